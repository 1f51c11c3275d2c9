"""The git worktree of a task: creating it, bringing its work home, and removing it."""
