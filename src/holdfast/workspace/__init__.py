"""WHERE AGENTS WRITE: a directory or a git worktree; what stood in it, what changed, and how it comes back."""
