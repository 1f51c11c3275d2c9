"""Files that the user named, in a project in which a sandboxed agent writes: if the agent replaces one by a
link, holdfast does not hand it what the sandbox hides."""

from __future__ import annotations

import os

import pytest

from holdfast.store import no_links
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need_sandbox

pytestmark = pytest.mark.req("SBX-1")
SECRET = "TOP-SECRET-KEY"
RETRY = ("--max-retries", "1", "--base-interval", "0.1s", "--max-interval", "0.2s")
#: A `claude` that plants a link and dies, and then copies the system prompt that it gets.
_CLAUDE = r"""#!/bin/sh
[ "$1" = --version ] && { echo 99.0.0; exit; }
for word; do
    case $before in
        --session-id | --resume) id=$word ;;
        --append-system-prompt-file) file=$word ;;
    esac
    before=$word
done
echo '{"type":"system","subtype":"init","session_id":"'$id'","model":"m"}'
if [ ! -e p2 ]; then
    cat "$file" > first
    mv prompts p2; mkdir prompts; ln -s $HOME/.ssh/id_rsa prompts/own.md
    kill -SEGV $$
fi
cat "$file" > got
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"'$id'","num_turns":1}'
"""


@pytest.fixture
def user(home: str, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A home directory with a key, and the program of the agent."""
    user = Repo(os.path.join(os.path.dirname(home), "user"), with_git=False)
    user.write(".ssh/id_rsa", f"{SECRET}\n")
    os.chmod(user.write("bin/claude", _CLAUDE), 0o755)
    monkeypatch.setenv("HOME", user.path)
    monkeypatch.setenv("PATH", f"{user.path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    return user


@pytest.mark.parametrize(
    "flags",
    [("--bootstrap", "prompts/own.md"), ("-o", "system_prompt_path=prompts/own.md")],
    ids=["bootstrap", "option"],
)
@pytest.mark.usefixtures("user")
def test_a_link_in_place_of_a_prompt_shows_nothing_that_is_hidden(home: str, flags: tuple[str, ...]) -> None:
    need_sandbox()
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("prompts/own.md")
    words = ("--agent", "claude", "--sandbox", *RETRY, *flags, "do it")
    task = Task.start(*words, project=project.path)
    task.wait_for("completed", "failed", "abandoned", "interrupted", within_s=40)
    assert project.read("first") == "text\n"
    assert os.path.islink(os.path.join(project.path, "prompts", "own.md"))
    for name in os.listdir(project.path):
        if os.path.isfile(os.path.join(project.path, name)):
            assert SECRET not in project.read(name)


def test_what_a_user_named_is_read_where_no_link_leads_out(home: str) -> None:
    root = os.path.dirname(home)
    outside = Repo(os.path.join(root, "outside"), with_git=False)
    project = Repo(os.path.join(root, "project"), with_git=False)
    outside.write("own.md", "outside\n")
    project.write("docs/own.md", "inside\n")
    os.symlink("docs/own.md", f"{project.path}/inner.md")
    os.symlink(f"{outside.path}/own.md", f"{project.path}/out.md")
    os.symlink(outside.path, f"{project.path}/folder")
    os.symlink(f"{outside.path}/own.md", f"{outside.path}/link.md")
    os.mkfifo(f"{project.path}/pipe.md")
    for name in ("docs/own.md", "inner.md"):
        assert no_links.read_named(f"{project.path}/{name}", project.path) == b"inside\n"
    assert no_links.read_named(f"{outside.path}/link.md", project.path) == b"outside\n"
    for name in ("out.md", "folder/own.md", "pipe.md"):
        with pytest.raises(OSError):
            no_links.read_named(f"{project.path}/{name}", project.path)
    assert no_links.leads_out(f"{project.path}/out.md", project.path)
    assert not no_links.leads_out(f"{project.path}/inner.md", project.path)


@pytest.mark.parametrize("before", ["ONE=1\n", ""], ids=["one", "none"])
@pytest.mark.parametrize("where", ["project", "elsewhere"])
def test_a_retry_takes_no_variables_of_an_agent(home: str, where: str, before: str) -> None:
    """Those of LD_PRELOAD, for example, reach programs outside the sandbox."""
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("a")
    folder = project if where == "project" else Repo(os.path.join(workspace(), "other"), with_git=False)
    path = folder.write(".env", before)
    done = holdfast(
        *("run", "--id", "it", "--env-file", path, "--", "sh", "-c", f"echo TWO=2 >> {path}; exit 1"),
        cwd=project.path,
    )
    assert done.returncode == 1, done.stderr
    done = holdfast("retry", "it")
    if where == "project":
        assert done.returncode == 3
        assert "was changed after the task was created" in " ".join(done.stderr.split())
        folder.write(".env", f"# as before\n{before}")
        assert holdfast("retry", "it").returncode == 0
    else:
        assert done.returncode == 0, done.stderr
    Task(os.path.join(home, "tasks", "it")).wait_for_event("task.moved", 3)
    holdfast("wait", "it")
