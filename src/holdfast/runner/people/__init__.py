"""What people send to a task and read about it: requests, interrupt files, notices, reports."""
