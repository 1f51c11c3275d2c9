"""`python -m tests.mutants`: which planted bugs are killed, which survive, and which cannot be planted."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.mutants import bug

#: A list entry. TOML's literal strings take the text as it is.
ENTRY = """
[{name}]
effect = "What goes wrong."
file = "{file}"
old = '''
{old}'''
new = '''
{new}'''
test = "{test}"
"""


def entry(name: str, planted: bug.Bug, *, old: str | None = None, test: str = "") -> str:
    return ENTRY.format(
        name=name,
        file=os.path.relpath(planted.file, bug.PACKAGE),
        old=planted.old if old is None else old,
        new=planted.new,
        test=test or planted.tests[0],
    )


def mutants(*argv: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", *argv],
        cwd=bug.ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_killed_survived_and_broken_bugs_are_distinguished(tmp_path) -> None:
    planted = next(each for each in bug.read_all() if each.name == "slots-off-by-one")
    elsewhere = "tests/unit/test_units.py"
    text = entry("found", planted) + entry("missed", planted, test=elsewhere)
    text += entry("gone", planted, old="this is nowhere", test=f"{elsewhere}::test_of_nothing")
    (tmp_path / "list.toml").write_text(text, encoding="utf-8")
    status, printed = mutants("--bugs", str(tmp_path), "-n", "1")
    lines = printed.splitlines()
    assert status == 1
    assert f"BROKEN    gone: the old text is in {planted.file} 0 times, not once; " in lines[0]
    assert f"there is no test {elsewhere}::test_of_nothing" in lines[0]
    assert [line.split()[0] for line in lines[1:3]] == ["killed", "SURVIVED"], printed
    assert " found: " in lines[1]
    assert " missed: What goes wrong." in lines[2]
    assert "1 of 2 planted bugs killed" in printed


def test_the_list_covers_every_package() -> None:
    bugs = bug.read_all()
    assert len(bugs) >= 60
    source = os.path.join(bug.ROOT, bug.PACKAGE)
    packages = {
        name for name in os.listdir(source) if os.path.exists(os.path.join(source, name, "__init__.py"))
    }
    covered = {os.path.relpath(each.file, bug.PACKAGE).split(os.sep)[0] for each in bugs}
    assert packages - covered <= {"testing"}
