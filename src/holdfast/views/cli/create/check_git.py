"""What a task needs of git, looked at before there is a task."""

from __future__ import annotations

from holdfast.errors import GitFailed, GitMissing, UsageError
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec


def check(spec: TaskSpec) -> None:
    """What the stages of a packet need: a worktree, or somebody who tells what they changed. Raises UsageError."""
    if spec.workspace == "worktree":
        check_worktree(spec.project_dir)
    elif any(stage.writes for stage in spec.stages):
        try:
            git.run(["version"], cwd=spec.project_dir)
        except (GitMissing, GitFailed) as error:
            raise UsageError(f"stages that write need git: {error}", hint=error.hint) from error


def check_worktree(project: str) -> None:
    """A worktree can be made of the project's repository. Raises UsageError."""
    try:
        repository = git.find(project)
        commit = git.head(project) if repository is not None else None
    except (GitMissing, GitFailed) as error:
        raise UsageError(f"a worktree needs git: {error}", hint=error.hint) from error
    if repository is None:
        raise UsageError(
            f"{project} is not in a git repository, so it can have no worktree",
            hint="'git init' and a first commit make it one; or run without --worktree",
        )
    if commit is None:
        raise UsageError(
            f"the repository {repository.top} has no commit yet, so it can have no worktree",
            hint="commit something first; or run without --worktree",
        )
