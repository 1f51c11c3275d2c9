"""Files between a task and its users: interrupt files, saved context, notices, reports, work items."""
