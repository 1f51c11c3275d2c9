"""Gates: checks between the end of a stage and its done marker. They check facts, not what a report says."""
