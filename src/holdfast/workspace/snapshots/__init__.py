"""Trees of a working tree: taking one, comparing two, and reverting to an older one."""
