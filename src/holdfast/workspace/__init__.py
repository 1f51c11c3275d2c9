"""Workspaces: the directories in which agents write, what changed there, and how it is merged."""
