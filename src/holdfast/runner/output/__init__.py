"""An attempt's output: from its raw logs to the journal and output.log."""
