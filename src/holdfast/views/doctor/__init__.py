"""Is everything here that a task needs? Questions with ok, warn or fail, and what to do about it. Nothing is changed."""
