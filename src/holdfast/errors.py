"""Every error that holdfast raises on purpose.

HoldfastError
├── UsageError               2   what was asked cannot be done as written; nothing changed
│   ├── InvalidId
│   ├── DuplicateTask
│   ├── UnknownAgent
│   ├── BadPlugin
│   ├── CommandNotFound
│   ├── UnreadableFile
│   ├── NoSuchDirectory
│   ├── InvalidManifest
│   ├── InvalidConfig
│   ├── MissingTemplate
│   ├── InvalidPattern
│   ├── ForbiddenInput
│   ├── PromptTooLarge
│   └── UnsafeHome
├── NotFound                 3   there is no such task
│   └── AmbiguousId
├── NotPossible              3   not in this state
│   ├── RequestRefused
│   ├── InvalidMove
│   ├── CorruptFile
│   ├── GitMissing
│   ├── GitFailed
│   └── StorageError
│       └── DiskFull
├── Unanswered               6   a wait ran out of time; what was asked still stands
└── LockHeld                75   somebody else owns it: not a crash

A class has a stable `code`, the `exit_status` of the command that ends with it, and a `hint` that says what to do.
4 and 5 are no errors of ours: a command ends with them when the task that it waited for needs a person or was abandoned.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Something that holdfast was asked to do did not work."""

    code = "error"
    exit_status = 1
    hint = ""

    def __init__(self, message: str, *, hint: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        #: One line each, where one sentence is not enough.
        self.details = details
        if hint:
            self.hint = hint


class UsageError(HoldfastError):
    """The request is wrong as written; nothing was changed."""

    code = "usage"
    exit_status = 2


class InvalidId(UsageError):
    """A task id has a character or a length that ids cannot have."""

    code = "invalid-id"
    hint = (
        "an id starts with a letter or digit and goes on with letters, digits, '.', '_' and '-', 64 at most"
    )


class DuplicateTask(UsageError):
    """A task of this id exists already."""

    code = "duplicate-task"
    hint = "choose another id, or leave --id out and get a new one"


class UnknownAgent(UsageError):
    """No adapter has this name."""

    code = "unknown-agent"


class BadPlugin(UsageError):
    """A plug-in is installed and cannot be used."""

    code = "bad-plugin"


class CommandNotFound(UsageError):
    """The program to run is not there."""

    code = "command-not-found"
    hint = "check the spelling and PATH"


class UnreadableFile(UsageError):
    """A file named on the command line cannot be read."""

    code = "unreadable-file"


class NoSuchDirectory(UsageError):
    """The project directory does not exist."""

    code = "no-such-directory"
    hint = "create it, or name another one with --project"


class MissingTemplate(UsageError):
    """A role has no prompt template."""

    code = "missing-template"


class InvalidPattern(UsageError):
    """A pattern of the user's cannot be used."""

    code = "invalid-pattern"


class ForbiddenInput(UsageError):
    """An input must not be shown to an agent."""

    code = "forbidden-input"


class PromptTooLarge(UsageError):
    """A prompt is larger than the agent takes, even with everything shortened."""

    code = "prompt-too-large"
    hint = "split the task, shorten the request, or attach less"


class InvalidManifest(UsageError):
    """A packet's manifest.yaml is not what a packet can ask for; the details are all its problems."""

    code = "invalid-manifest"
    hint = "'holdfast pipeline list' shows what can be chosen, 'holdfast pipeline check DIR' looks again"


class InvalidConfig(UsageError):
    """A file of agents or pipelines is wrong; the details are all the problems."""

    code = "invalid-config"


class UnsafeHome(UsageError):
    """Other users could write into the home."""

    code = "unsafe-home"


class NotFound(HoldfastError):
    """There is no such task."""

    code = "not-found"
    exit_status = 3
    hint = "'holdfast ls' shows the tasks of this home"


class AmbiguousId(NotFound):
    """A shortened id fits more than one task."""

    code = "ambiguous-id"
    hint = "type more of the id"


class NotPossible(HoldfastError):
    """It cannot be done in this state."""

    code = "not-possible"
    exit_status = 3


class RequestRefused(NotPossible):
    """The runner refused the request."""

    code = "refused"


class InvalidMove(NotPossible):
    """A task cannot go from the one state to the other."""

    code = "invalid-move"


class CorruptFile(NotPossible):
    """A file of a packet does not hold what it should."""

    code = "corrupt-file"


class GitMissing(NotPossible):
    """There is no git, and what was asked needs it."""

    code = "git-missing"
    hint = "install git 2.31 or newer, and check PATH"


class GitFailed(NotPossible):
    """git did not do what it was asked to."""

    code = "git-failed"


class StorageError(NotPossible):
    """The disk did not take what was written."""

    code = "storage"


class DiskFull(StorageError):
    """There is no room on the disk."""

    code = "disk-full"
    hint = "free some space; nothing that was there is lost"


class Unanswered(HoldfastError):
    """Nobody answered in time; the request stands."""

    code = "unanswered"
    exit_status = 6


class LockHeld(HoldfastError):
    """Somebody else holds the lock."""

    code = "lock-held"
    exit_status = 75
