"""Making a task from a command line: read the options, check them, write the packet."""
