"""The gate `ci` of a new task: what it needs of this machine, and where it will push."""

from __future__ import annotations

from holdfast import paths, program_search
from holdfast.errors import GitFailed, NotPossible, UsageError
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec


def recorded(spec: TaskSpec) -> TaskSpec:
    """The spec with the address of the remote, so that no agent can choose another. Raises UsageError."""
    pipeline = spec.pipeline
    if pipeline is None or not pipeline.ci:
        return spec
    if spec.workspace != "worktree":
        raise UsageError(
            "gate.ci needs a branch of the task", hint="set workspace: worktree, or give --worktree"
        )
    program_search.distrust(spec.project_dir)
    if program_search.find("gh") is None:
        raise UsageError(
            "gate.ci needs gh, which is not installed",
            hint="install the GitHub CLI (https://cli.github.com), then 'gh auth login'; or set "
            "gate.ci.pull_request: off",
        )
    from holdfast.workspace import git
    from holdfast.workspace.git import remote as remotes
    from holdfast.workspace.worktrees import push

    repository = git.find(spec.project_dir)
    assert repository is not None  # a worktree needs one, which was checked
    try:
        place = remotes.find(repository, pipeline.ci_remote or None)
        push.refuse_agents(Home(paths.home()), place, repository.top)
    except (NotPossible, GitFailed) as error:
        raise UsageError(f"gate.ci: {error}", hint=error.hint) from error
    return spec.evolve(pipeline=pipeline.evolve(ci_remote=place.name, ci_url=place.url))
