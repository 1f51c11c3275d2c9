"""Classification of the last lines of output."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.watch import prompting
from holdfast.watch.prompting import Showing

CAPTURES = os.path.join(os.path.dirname(__file__), "..", "..", "captures")


@pytest.mark.req("SUP-11")
@pytest.mark.parametrize(
    "text",
    [
        "Fork this session into current directory? [y/N] ",
        "file exists\nOverwrite notes.md? (y/n)",
        "Proceed? [Y/n/a]: ",
        "[sudo] password for ann: ",
        "Password:",
        "Enter passphrase for key '/home/ann/.ssh/id_ed25519': ",
        "Username for 'https://github.com': ",
        "? Please enter your API key:",
        "Paste code here if prompted >",
        "Press Enter to continue...",
        "press any key to exit",
        "First copy your one-time code: AB12-CD34\nOpen https://github.com/login/device in your browser",
        "To authenticate, visit https://auth.example.com/oauth/authorize?code=1",
        "Waiting for authentication... (press ctrl+c to cancel)",
        "Bash command\n\n  rm -rf build\n\nDo you want to proceed?\n"
        "❯ 1. Yes\n  2. No, and tell it what to do",
        "Do you trust the files in this folder?\n ❯ 1. Yes, proceed\n   2. No, exit\n\n Esc to cancel",
        "How would you like to authenticate for this project?\n● 1. Login with Google\n  2. Use an API key",
        "\x1b[1mOverwrite?\x1b[0m \x1b[2m[y/N]\x1b[0m \x1b[?25h",
    ],
)
def test_a_question_is_one(text: str) -> None:
    assert prompting.showing(text) == Showing.WAITING_FOR_INPUT


@pytest.mark.req("SUP-11")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "working",
        # It was answered, or the agent continued.
        "Overwrite? [y/N] y\noverwriting",
        "Overwrite notes.md? (y/n)\nn\nkept",
        "Press Enter to continue...\ncontinuing\n",
        "Do you want to proceed?\nYes.\nProceeding with the plan.",
        # Words about questions.
        "The installer asks 'Overwrite? [y/N]' and I answered no.",
        "I added a prompt that says Do you want to proceed? and a test for it.",
        "Would you like me to add a test for it?",
        "Shall I go on?",
        "usage: tool [-y] [-n] [--yes/--no] FILE",
        "the option (y/n) is documented below.",
        # Output of tools.
        "password: hunter2",
        "database:\n  user: ann\n  password_file: /run/secret",
        "docs/login.md:12: Open https://github.com/login/device in your browser, then come back\n3 matches",
        "> build\n> tsc -p .",
        "* main\n  other",
        "Select tests:\nran 30 tests in 2 s",
        # Events that quote.
        '{"type":"text","text":"Overwrite? [y/N]"}',
        '{"event":"say","text":"Press Enter to continue..."}',
        '{"event":"say","text":"Open https://github.com/login/device in your browser"}',
        "Enter the room. Then leave it by the other door",
        "Type checking took 3 s: ok",
    ],
)
def test_text_that_only_looks_like_a_question_is_not_one(text: str) -> None:
    assert prompting.showing(text) != Showing.WAITING_FOR_INPUT


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: x',
            "crash_text",
        ),
        (
            "TypeError: x is not a function\n    at main (/app/cli.js:1:2)\n    at node (node:internal/a:1)",
            "crash_text",
        ),
        ("thread 'main' panicked at src/main.rs:1:1:\nno way", "crash_text"),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "crash_text"),
        ("Segmentation fault (core dumped)", "crash_text"),
        ("Error: no such file", "unknown"),
        ("I fixed the ValueError: it was raised too early.", "unknown"),
        ("Update available! 1.0.1 → 1.0.2\nRun npm i -g agent to update", "upgrade_nag"),
        ("A new version of agent is available: 2.0", "upgrade_nag"),
        ("npm notice New major version of npm available! 10.8.2 -> 11.0.0", "upgrade_nag"),
        ("Update available\nContinue? [y/N] ", "waiting_for_input"),
        ("I will update the available tests.", "unknown"),
    ],
)  # fmt: skip
def test_the_other_kinds(text: str, found: str) -> None:
    assert prompting.showing(text) == found


def test_only_the_last_lines_count() -> None:
    old = "Traceback (most recent call last):\nUpdate available\n"
    assert prompting.showing(old + "\n".join(f"line {n}" for n in range(5))) == Showing.UNKNOWN


@pytest.mark.req("SUP-11")
def test_a_question_is_believed_when_it_was_seen_twice_in_a_row() -> None:
    asks, other = Showing.WAITING_FOR_INPUT, Showing.UNKNOWN
    assert not prompting.is_waiting([])
    assert not prompting.is_waiting([asks])
    assert not prompting.is_waiting([asks, other])
    assert not prompting.is_waiting([asks, other, asks])
    assert prompting.is_waiting([other, asks, asks])


_TEXTS = st.text(max_size=3000) | st.text(alphabet="[]yYnN/ ?:>❯1.\n", max_size=300)


@given(_TEXTS)
def test_any_text_is_judged_by_its_last_lines_without_blank_lines_and_colours(text: str) -> None:
    kind = prompting.showing(text)
    assert kind == prompting.showing(text + "\n \n\n")
    assert kind == prompting.showing("\n".join(f"\x1b[1m{line}\x1b[0m" for line in text.split("\n")))
    assert kind == prompting.showing("\n".join(["Overwrite? [y/N]", *["on"] * 5, text]))


@given(_TEXTS)
def test_whatever_came_before_a_question_is_the_last_line_and_one_that_was_answered_is_none(
    text: str,
) -> None:
    assert prompting.showing(f"{text}\nOverwrite notes.md? [y/N] ") == Showing.WAITING_FOR_INPUT
    assert prompting.showing(f"{text}\nOverwrite notes.md? [y/N] y\n1\n2\n3\n4\n5") == Showing.UNKNOWN


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("a", Showing.UNKNOWN),
        ("y/", Showing.UNKNOWN),
        ("[y/", Showing.UNKNOWN),
        (" ", Showing.UNKNOWN),
        ("enter ", Showing.UNKNOWN),
        ("press enter ", Showing.WAITING_FOR_INPUT),
        ("\x1b[", Showing.UNKNOWN),
        ("do you want ", Showing.UNKNOWN),
    ],
)
def test_a_long_line_is_judged_by_its_end_and_costs_nothing(unit: str, kind: Showing) -> None:
    began_s = time.process_time()
    assert prompting.showing(unit * 200_000) == kind
    # A pattern that tries every split of the line would take minutes.
    assert time.process_time() - began_s < 1.0


def test_no_recorded_run_asks_anything() -> None:
    """JSON on stdout, and on stderr what real programs say to people: false alarms would show here."""
    asking: list[str] = []
    for folder, _, files in os.walk(CAPTURES):
        for name in files:
            if not name.endswith((".stdout.jsonl", ".stderr.txt")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                if prompting.showing(file.read()) == Showing.WAITING_FOR_INPUT:
                    asking.append(name)
    assert asking == []
