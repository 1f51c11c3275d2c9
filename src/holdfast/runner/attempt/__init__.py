"""One attempt: open, observe, stop, sweep."""
