"""A TASK'S DIRECTORY: made whole or not at all, read by everybody, asked for things through its inbox."""
