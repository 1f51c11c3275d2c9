"""What stages leave behind: the files derived from their reports, and the summary of the task."""
