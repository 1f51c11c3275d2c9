"""holdfast top: the tasks of a home on a terminal, live. Needs Textual (the extra `tui`)."""
