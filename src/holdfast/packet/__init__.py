"""A task's directory: created atomically, readable by every process, and changed by requests in its inbox."""
