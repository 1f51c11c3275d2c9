"""Screening the commands that a model proposed, before they run. Pure.

It prevents accidents; it does not protect against malice, because a command can always be hidden in another
one. It reads every command of a line, also after `;`, `&&`, `|`, prefixes like `env`, `sh -c`, `$(…)` and
`xargs`, and refuses what it cannot parse.
"""

from __future__ import annotations

import posixpath
import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PUNCTUATION = "();<>|&\n"
_ENDS = (";", "&", "&&", "||", "|", "|&", "(", ")", "\n", ";;", "((", "))")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox")
_INTERPRETERS = (*SHELLS, "python", "python3", "perl", "ruby", "node", "php", "source", ".", "eval")
_FETCHERS = ("curl", "wget", "fetch", "aria2c", "http", "nc", "ncat")
#: Prefixes of a command, with the number of positional arguments that each takes itself.
_PREFIXES = {
    "env": 0, "command": 0, "builtin": 0, "exec": 0, "nohup": 0, "nice": 0, "ionice": 0, "time": 0,
    "setsid": 0, "xargs": 0, "stdbuf": 0, "timeout": 1, "chronic": 0, "!": 0, "{": 0, "}": 0, "if": 0,
    "then": 0, "else": 0, "elif": 0, "do": 0, "while": 0, "until": 0,
}  # fmt: skip
_BECOMES_ROOT = ("sudo", "su", "doas", "pkexec", "run0")
_DISKS = re.compile(r"(mkfs(\..+)?|mke2fs|wipefs|fdisk|sfdisk|gdisk|parted|mkswap|shred|blkdiscard)$")
_POWER = ("shutdown", "reboot", "halt", "poweroff")
_SYSTEM = re.compile(
    r"/(etc|usr|bin|sbin|lib\w*|boot|dev|sys|proc|opt|root|var|srv|run|Library|System)(/|$)|/$"
)
_HARMLESS = re.compile(r"/dev/(null|stdout|stderr|stdin|tty|fd/\d+|shm/.+)$|/var/tmp/|/usr/local/tmp/")
_DOTFILES = re.compile(r"(~|\$HOME|\$\{HOME\})(/\.|/?$)")
_FORK_BOMB = re.compile(r"([\w:.]+)\s*\(\)\s*\{[^}]*\1\s*\|\s*\1\s*&")
_SUBSTITUTED_FETCH = re.compile(rf"(?:\$\(|`|<\()\s*(?:\S*/)?(?:{'|'.join(_FETCHERS)})\b")
_MAX_DEPTH = 6


def objection(command: str, *, depth: int = 0) -> str | None:
    """Why a command must not run; None if it may."""
    if depth > _MAX_DEPTH:
        return "it is nested too deeply"
    if _FORK_BOMB.search(command):
        return "it is a fork bomb"
    for inner in _substitutions(command):
        if why := objection(inner, depth=depth + 1):
            return why
    try:
        words = _words(command)
    except ValueError as error:
        return f"it cannot be parsed: {error}"
    return _redirect_objection(words) or _pipe_objection(words) or _list_objection(words, command, depth)


def simple_commands(command: str) -> list[list[str]]:
    """The simple commands of a line, each without assignments and prefixes. Raises ValueError."""
    bare = (_without_prefixes(simple) for simple in _simple_commands(_words(command)))
    return [words for words in bare if words]


def _list_objection(words: list[str], command: str, depth: int) -> str | None:
    for simple in _simple_commands(words):
        bare = _without_prefixes(simple)
        if bare and (why := _command_objection(bare, command, depth)):
            return why
    return None


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _simple_commands(words: list[str]) -> Iterator[list[str]]:
    simple: list[str] = []
    for word in words:
        if word in _ENDS or (word and not word.strip(";&|()\n")):
            yield simple
            simple = []
        else:
            simple.append(word)
    yield simple


def _without_prefixes(simple: list[str]) -> list[str]:
    """A command without assignments and prefixes."""
    words = list(simple)
    while words:
        name = _name(words[0])
        if re.match(r"[A-Za-z_]\w*\+?=", words[0]):
            words.pop(0)
        elif name in _PREFIXES:
            words.pop(0)
            positional = _PREFIXES[name]
            while words and (words[0].startswith("-") or positional):
                positional -= not words[0].startswith("-")
                if (
                    words.pop(0) in ("-n", "-I", "-u", "-s", "-k", "-P", "-L", "-d", "-C")
                    and name != "exec"
                    and words
                ):
                    words.pop(0)
        else:
            return words
    return words


def _name(word: str) -> str:
    return posixpath.basename(word.lstrip("\\")) or word


def _command_objection(words: list[str], command: str, depth: int) -> str | None:
    name, rest = _name(words[0]), words[1:]
    options = [word for word in rest if word.startswith("-")]
    letters = "".join(word[1:] for word in options if not word.startswith("--"))
    plain = [word for word in rest if not word.startswith("-")]
    if name in _BECOMES_ROOT:
        return f"it uses {name}"
    if name == "rm" and (set("rR") & set(letters) or "--recursive" in options):
        return "it removes recursively"
    if name == "find":
        return _find_objection(rest, command, depth)
    if name == "dd" and any(word.startswith("of=/dev/") and not _HARMLESS.match(word[3:]) for word in rest):
        return "it writes to a device with dd"
    if _DISKS.match(name):
        return f"it uses {name}"
    if name in _POWER or (name in ("init", "telinit") and plain[:1] in (["0"], ["6"])):
        return "it shuts the machine down"
    is_recursive = "R" in letters or "--recursive" in options
    if name in ("chmod", "chown", "chgrp") and is_recursive and any(_is_system(word) for word in plain[1:]):
        return f"it uses {name} recursively outside the project"
    if name == "kill" and "-1" in rest[1:]:
        return "it signals every process"
    if name in ("tee", "truncate") and any(_is_system(word) for word in plain):
        return "it writes into a system directory"
    if name in ("cp", "mv", "install", "ln", "rsync") and plain and _is_system(plain[-1]):
        return "it writes into a system directory"
    if name == "git":
        return _git_objection(rest)
    if name in _INTERPRETERS and _SUBSTITUTED_FETCH.search(command):
        return "it runs code from the network"
    if name in SHELLS and "c" in letters and plain:
        return objection(plain[0], depth=depth + 1)
    if name == "eval":
        return objection(" ".join(rest), depth=depth + 1)
    return None


def _find_objection(rest: list[str], command: str, depth: int) -> str | None:
    if "-delete" in rest:
        return "it removes recursively"
    for at, word in enumerate(rest):
        if word in ("-exec", "-execdir", "-ok", "-okdir") and at + 1 < len(rest):
            inner = rest[at + 1 :]
            if _name(inner[0]) in ("rm", "unlink", "shred"):
                return "it removes recursively"
            return _command_objection(inner, command, depth)
    return None


def _git_objection(rest: list[str]) -> str | None:
    words = list(rest)
    while words and words[0].startswith("-"):
        # `-C DIR` and `-c NAME=VALUE` come before the verb.
        if words.pop(0) in ("-C", "-c", "--git-dir", "--work-tree") and words:
            words.pop(0)
    verb, rest = (words[0], words[1:]) if words else ("", [])
    letters = "".join(word[1:] for word in rest if word.startswith("-") and not word.startswith("--"))
    if verb == "push":
        is_forced = "f" in letters or any(
            word.startswith(("--force", "--mirror", "--delete", "+")) for word in rest
        )
        return "it force-pushes" if is_forced else "it pushes"
    if verb == "clean" and ("f" in letters or "--force" in rest):
        return "it removes untracked files"
    if verb == "reset" and "--hard" in rest:
        return "it discards changes"
    return None


def _redirect_objection(words: list[str]) -> str | None:
    for at, word in enumerate(words[:-1]):
        if word and not word.strip("<>&|") and ">" in word and _is_system(words[at + 1]):
            return f"it writes into a system directory: {words[at + 1]}"
    return None


def _is_system(path: str) -> bool:
    """Whether a path is a system directory or a dot file of the user."""
    if _HARMLESS.match(path):
        return False
    return bool(
        _SYSTEM.match(posixpath.normpath(path) if path.startswith("/") else path) or _DOTFILES.match(path)
    )


def _pipe_objection(words: list[str]) -> str | None:
    """`… | sh` runs a program that was not screened."""
    simple: list[str] = []
    has_piped_stdin = False
    for word in [*words, ";"]:
        if word not in _ENDS and not (word and not word.strip(";&|()\n")):
            simple.append(word)
            continue
        bare = _without_prefixes(simple)
        if has_piped_stdin and bare and _reads_program(bare):
            return "it pipes into a shell"
        has_piped_stdin = word in ("|", "|&") if bare else has_piped_stdin
        simple = []
    return None


def _reads_program(words: list[str]) -> bool:
    """Whether a command reads the program that it runs from stdin."""
    name = _name(words[0])
    if name in _BECOMES_ROOT:
        return True
    plain = [word for word in words[1:] if not word.startswith("-") or word == "-"]
    has_program = any(word.startswith("-c") or word in ("-e", "-m", "-n") for word in words[1:])
    is_interpreter = name in _INTERPRETERS or re.fullmatch(r"python[\d.]*", name) is not None
    return is_interpreter and not has_program and (not plain or plain[0] == "-" or "-s" in words)


def _substitutions(command: str) -> Iterator[str]:
    """The commands in `$(…)`, `<(…)` and backquotes, outside single quotes."""
    at, is_quoted = 0, False
    while at < len(command):
        char = command[at]
        if char == "\\":
            at += 2
            continue
        if char == '"':
            is_quoted = not is_quoted
        elif char == "'" and not is_quoted:
            end = command.find("'", at + 1)
            if end < 0:
                return
            at = end
        elif char == "`":
            end = command.find("`", at + 1)
            if end < 0:
                return
            yield command[at + 1 : end]
            at = end
        elif char in "$<>" and command[at + 1 : at + 2] == "(":
            end = _closing(command, at + 1)
            yield command[at + 2 : end]
            at += 1
        at += 1


def _closing(command: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(command)):
        depth += {"(": 1, ")": -1}.get(command[at], 0)
        if depth == 0:
            return at
    return len(command)
