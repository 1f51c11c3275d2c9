"""Following a task until it ends or needs a person."""
