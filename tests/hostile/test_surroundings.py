"""Verbs typed in a hostile clone: what it brings besides `.holdfast/` decides nothing either."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace
from tests.support.tools import need
from tests.support.waiting import eventually


@pytest.mark.parametrize("planted", ["whole", "pulled"])
def test_a_home_that_a_repository_brings(home: str, monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    """HOLDFAST_HOME may be a directory of the project. `whole`: the clone has it already, with its records;
    `pulled`: the user's home gets more files with the next pull."""
    root = os.path.dirname(home)
    ran = os.path.join(root, "ran")
    theirs = {
        "HOLDFAST_HOME": os.path.join(root, "theirs"),
        "XDG_CONFIG_HOME": os.path.join(root, "their-settings"),
        "HOLDFAST_KEEPER": "off",
    }
    assert holdfast("submit", "--id", "evil", "--", "touch", ran, env=theirs).returncode == 0
    clone = Repo(os.path.join(root, "clone"))
    clone.commit("a")
    monkeypatch.setenv("HOLDFAST_HOME", "hf")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    if planted == "pulled":
        assert holdfast("run", "--id", "own", "--", "true", cwd=clone.path).returncode == 0
    records = glob.glob(os.path.join(theirs["XDG_CONFIG_HOME"], "holdfast", "trust", "homes", "*"))
    brought = [os.path.join(theirs["HOLDFAST_HOME"], "tasks", "evil"), *glob.glob(f"{records[0]}/*/")]
    for source in brought:
        name = "tasks/evil" if source.endswith("evil") else os.path.basename(os.path.dirname(source))
        target = os.path.join(clone.path, "hf", name)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("bell"), dirs_exist_ok=True)
    try:
        assert holdfast("up", cwd=clone.path).returncode == 0
        for number in ("1", "2"):  # the queue works, one task after the other
            task = f"own-{number}"
            assert holdfast("submit", "--id", task, "--", "true", cwd=clone.path).returncode == 0
            assert holdfast("wait", task, "--timeout", "40s", cwd=clone.path).returncode == 0
        assert not os.path.exists(ran)
        assert "'holdfast resume --adopt evil'" in " ".join(holdfast("status", cwd=clone.path).stdout.split())
        refused = holdfast("resume", "evil", cwd=clone.path)
        assert refused.returncode == 3
        assert holdfast("resume", "--adopt", "evil", cwd=clone.path).returncode == 0
        eventually(lambda: os.path.exists(ran), what="what the user has adopted runs")
    finally:
        holdfast("down", "--now", cwd=clone.path)


def test_settings_at_a_relative_path(home: str) -> None:
    """XDG_CONFIG_HOME that is relative counts as unset, as its standard says."""
    clone = Repo(os.path.join(workspace(), "clone"))
    ran = os.path.join(os.path.dirname(home), "ran")
    clone.write("cfg/holdfast/config.toml", f'pre_work = ["touch {ran}"]\n')
    clone.commit("a")
    done = holdfast("run", "--", "true", cwd=clone.path, env={"XDG_CONFIG_HOME": "cfg"})
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(ran)
    shown = holdfast("config", "path", cwd=clone.path, env={"XDG_CONFIG_HOME": "cfg"})
    assert "cfg" not in shown.stdout


def test_a_home_at_a_relative_path(home: str) -> None:
    clone = Repo(os.path.join(workspace(), "clone"))
    env = {"XDG_STATE_HOME": "state", "HOLDFAST_HOME": ""}
    shown = holdfast("status", "--json", cwd=clone.path, env=env)
    assert clone.path not in json.loads(shown.stdout)["home"]


@pytest.mark.parametrize("user", ["nobody", "relative"])
def test_a_directory_that_is_called_like_the_users(home: str, user: str) -> None:
    """`nobody`: neither HOME nor an account, as in a container that was started with any user id."""
    clone = Repo(os.path.join(workspace(), "clone"))
    for name in ("~", "."):
        clone.write(f"{name}/.config/holdfast/config.toml", "pre_work = ['false']\n")
    script = (
        "import os; from holdfast import paths; os.environ.pop('XDG_CONFIG_HOME', None); "
        "os.environ['HOME'] = '.'; "
        + ("os.environ.pop('HOME'); import pwd; os.getuid = lambda: 2**31 - 7; " if user == "nobody" else "")
        + "print(os.path.exists(paths.user_settings()), paths.default_home())"
    )
    env = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=clone.path, env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["False", "/.local/state/holdfast"], done.stderr


@pytest.mark.parametrize("words", [("report", "--html", "docs/page.html")])
def test_a_link_that_leads_into_another_repository(home: str, words: tuple[str, ...]) -> None:
    root = workspace()
    clone, other = Repo(os.path.join(root, "clone")), Repo(os.path.join(root, "other"))
    os.symlink(other.path, os.path.join(clone.path, "docs"))
    done = holdfast(*words, cwd=clone.path)
    assert done.returncode == 3, done.stderr
    assert "leads out of" in " ".join(done.stderr.split())
    assert not os.path.exists(os.path.join(other.path, "page.html"))
    done = holdfast(*words, cwd=other.path)
    assert "no such directory" in " ".join(done.stderr.split())
    os.mkdir(os.path.join(other.path, "docs"))
    assert holdfast(*words, cwd=other.path).returncode == 0


def test_commands_to_type_next_quote_names_of_a_project(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item's pool has any name, and needs no trust."""
    need("bash")
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    project = workspace()
    ran = os.path.join(os.path.dirname(home), "ran")
    pool = f"x; touch {ran} #"
    folder = os.path.join(os.path.dirname(home), "programs")
    os.makedirs(folder)
    os.symlink("/bin/true", os.path.join(folder, "pi"))
    path = os.path.join(project, "items.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{"title": "t", "prompt": "p", "agent": "pi", "pool": pool}], file)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    assert holdfast("queue", "import", path, cwd=project, env=env).returncode == 0
    assert holdfast("queue", "pause", pool).returncode == 0
    said = " ".join(holdfast("queue", "ls").stderr.split())
    command = said.partition(" is paused; '")[2].partition("' continues")[0]
    assert command.startswith("holdfast queue resume ")
    subprocess.run(["bash", "-c", f"holdfast() {{ :; }}; {command}"], timeout=20, check=False)
    assert not os.path.exists(ran)


def test_commands_to_type_next_quote_what_a_manifest_says(home: str) -> None:
    assert holdfast("run", "--id", "it", "--", "true").returncode == 0
    path = os.path.join(home, "tasks", "it", "manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    manifest["stages"][0]["name"] = "x; touch ran"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    for verb in ("resume", "approve"):
        assert "--from 'x; touch ran'" in " ".join(holdfast(verb, "it").stderr.split())


def test_the_home_that_a_tested_notifier_gets(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the directory of temporary files, where anybody can make a home."""
    root = os.path.dirname(home)
    settings = Repo(os.path.join(root, "settings"), with_git=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", settings.path)
    script = f'printf %s "$HOLDFAST_HOME" > {root}/told'
    rule = f"[[notify]]\non = ['all']\nto = 'command'\nargv = ['sh', '-c', {json.dumps(script)}]\n"
    settings.write("holdfast/config.toml", rule)
    done = holdfast("notify", "test")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(root, "told"), encoding="utf-8") as file:
        assert file.read() == home


def test_a_file_with_the_name_of_a_command(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`holdfast queue import *.json` in a clone: names of files are not commands."""
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    clone = Repo(os.path.join(workspace(), "clone"))
    name = "cmd:touch ran #.json"
    clone.write(name, "[]")
    for words in ((name,), ("--from", name)):
        done = holdfast("queue", "import", *words, cwd=clone.path)
        assert done.returncode == 2, done.stderr
        assert "there is a file with this name" in " ".join(done.stderr.split())
        assert not os.path.exists(os.path.join(clone.path, "ran"))
    assert holdfast("queue", "import", f"./{name}", cwd=clone.path).returncode == 0
    assert holdfast("queue", "import", "cmd:touch ran; echo []", cwd=clone.path).returncode == 0
    assert os.path.exists(os.path.join(clone.path, "ran"))
