"""Workspaces: the directories in which agents write, what changed there, and how it is merged.

git/                git, run in a way that no repository or agent can change
snapshots/          trees of a working tree, kept in the packet; changes between them; reverting
worktrees/          the git worktree of a task: create, apply, push, remove
project_tree.py     the tree to record: the repository around a project, or the project alone
base.py             the workspace at the start of a task
prepare.py          the workspace of a stage: create it and record its tree
current_tree.py     its tree now
task_worktree.py    the record of a task's worktree
candidates.py       the worktrees of candidates (best of N)
clean_room.py       fresh checkouts in which commands judge a tree; room_places.py: where they are
scope.py            what a task may change; patterns of paths
changed_files.py    uncommitted files; unlike_head.py: those that an index or an ignore file hides
surroundings.py     what changed around a worktree: branches, the user's own tree
frozen_settings.py  settings of git from before the first agent
sandbox_commits.py  commits of sandboxed agents, brought into the user's repository
lock.py             one task at a time writes in a directory
chore.py            the process of a chore: command line, exit status; __main__.py: `prepare` and `adopt`
"""
