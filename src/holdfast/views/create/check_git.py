"""Checks of git before a task is created."""

from __future__ import annotations

from holdfast.errors import GitFailed, GitMissing, HoldfastError, UsageError
from holdfast.workspace import changed_files, git
from holdfast.workspace.snapshots.changes import few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec
    from holdfast.views.create.new_task import Talk


def check(spec: TaskSpec) -> None:
    """Git can make the worktree of a packet, or record what its stages change. Raises UsageError."""
    if spec.workspace == "worktree":
        check_worktree(spec.project_dir)
    elif any(stage.writes for stage in spec.stages):
        try:
            git.version()
        except (GitMissing, GitFailed) as error:
            raise UsageError(f"stages that write need git: {error}", hint=error.hint) from error


def noted(spec: TaskSpec, *, talk: Talk) -> TaskSpec:
    """The spec with a note of the uncommitted files, which a worktree lacks; the note is printed, too."""
    if spec.workspace != "worktree" or spec.base is not None:
        return spec
    try:
        repository = git.find(spec.project_dir)
        with git.within(git.VIEW_S):
            missing = changed_files.listed(repository) if repository is not None else []
    except HoldfastError:
        return spec  # a note is no reason to fail: the task says what is wrong with git
    if not missing:
        return spec
    note = f"not committed, so not in the worktree: {few(missing)}"
    talk(f"note: {note}")
    return spec.evolve(notes=(*spec.notes, note))


def check_accept(project: str, commands: list[str]) -> None:
    """Git can make the clean checkout for `--accept`. Raises UsageError."""
    if not all(command.strip() for command in commands):
        raise UsageError("--accept: the command is empty", hint="for example --accept 'make test'")
    try:
        repository = git.find(project)
        if repository is None:
            git.version()  # a missing git is the more useful error
    except (GitMissing, GitFailed) as error:
        raise UsageError(f"--accept needs git: {error}", hint=error.hint) from error
    if repository is None:
        raise UsageError(
            f"--accept needs a clean checkout of the work, and {project} is not in a git repository",
            hint="create one with 'git init', or set post_work in .holdfast/config.toml, which runs in place",
        )


def check_worktree(project: str) -> None:
    """Git can make a worktree of the project. Raises UsageError."""
    try:
        repository = git.find(project)
        if repository is None:
            git.version()  # a missing git is the more useful error
        commit = git.head(repository) if repository is not None else None
    except (GitMissing, GitFailed) as error:
        raise UsageError(f"a worktree needs git: {error}", hint=error.hint) from error
    if repository is None:
        raise UsageError(
            f"cannot make a worktree: {project} is not in a git repository",
            hint="create one with 'git init' and a first commit, or run without --worktree",
        )
    if commit is None:
        raise UsageError(
            f"cannot make a worktree: the repository {repository.top} has no commit yet",
            hint="commit something first, or run without --worktree",
        )
