"""Every error that holdfast raises on purpose.

HoldfastError
├── UsageError               2   the request is invalid; nothing changed
│   ├── InvalidId
│   ├── DuplicateTask
│   ├── UnknownAgent
│   ├── BadPlugin
│   ├── CommandNotFound
│   ├── UnreadableFile
│   ├── NoSuchDirectory
│   ├── InvalidManifest
│   ├── InvalidConfig
│   ├── InvalidVariable
│   ├── MissingTemplate
│   ├── InvalidPattern
│   ├── ForbiddenInput
│   ├── PromptTooLarge
│   ├── SandboxMissing
│   └── UnsafeHome
├── NotFound                 3   no such task
│   └── AmbiguousId
├── NotPossible              3   not possible in this state
│   ├── RequestRefused
│   ├── ForPersons
│   ├── InvalidMove
│   ├── CorruptFile
│   │   └── ForgedJournal
│   ├── GitMissing
│   ├── GitFailed
│   ├── ProcMissing
│   └── StorageError
│       └── DiskFull
├── TaskFailed               1   the task that was waited for failed or was stopped
│   ├── NeedsPerson          4   … needs a person
│   └── Abandoned            5   … was abandoned
├── Unanswered               6   no answer in time; the request is still pending
└── LockHeld                75   another process holds the lock: not a crash

A class has a stable `code`, the `exit_status` of the command that ends with it, and a `hint` with what to do.
The command line raises no TaskFailed: how the task ended is its exit status. The Python API does, if asked
(`TaskInfo.check`).
"""

from __future__ import annotations

import sys


class HoldfastError(Exception):
    """holdfast could not do what was requested."""

    code = "error"
    exit_status = 1
    hint = ""

    def __init__(self, message: str, *, hint: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        #: Additional lines, if one sentence is not enough.
        self.details = details
        if hint:
            self.hint = hint


def print_error(error: HoldfastError) -> None:
    """Print an error and its hint to stderr; for programs that are not the command line."""
    print(f"error: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)


class UsageError(HoldfastError):
    """The request is invalid; nothing was changed."""

    code = "usage"
    exit_status = 2


class InvalidId(UsageError):
    """A task id has an invalid character or length."""

    code = "invalid-id"
    hint = (
        "an id starts with a letter or digit, followed by letters, digits, '.', '_' and '-'; at most 64 "
        "characters"
    )


class DuplicateTask(UsageError):
    """A task with this id exists already."""

    code = "duplicate-task"
    hint = "choose another id, or omit --id to get a new one"


class UnknownAgent(UsageError):
    """No adapter has this name."""

    code = "unknown-agent"


class BadPlugin(UsageError):
    """A plug-in is installed but cannot be used."""

    code = "bad-plugin"


class CommandNotFound(UsageError):
    """The program to run does not exist."""

    code = "command-not-found"
    hint = "check the spelling and PATH"


class UnreadableFile(UsageError):
    """A file named on the command line cannot be read."""

    code = "unreadable-file"


class NoSuchDirectory(UsageError):
    """The project directory does not exist."""

    code = "no-such-directory"
    hint = "create it, or choose another one with --project"


class InvalidVariable(UsageError):
    """An environment variable has an invalid value."""

    code = "invalid-variable"


class MissingTemplate(UsageError):
    """A role has no prompt template."""

    code = "missing-template"


class InvalidPattern(UsageError):
    """A user's pattern is invalid or too expensive."""

    code = "invalid-pattern"


class ForbiddenInput(UsageError):
    """An input must not be shown to an agent."""

    code = "forbidden-input"


class PromptTooLarge(UsageError):
    """A prompt is larger than the agent accepts, even when shortened."""

    code = "prompt-too-large"
    hint = "split the task, shorten the request, or attach less"


class SandboxMissing(UsageError):
    """A sandbox is asked for, and this machine cannot make one."""

    code = "sandbox-missing"
    hint = "'holdfast doctor' says what is missing"


class InvalidManifest(UsageError):
    """A packet's manifest.yaml is invalid; the details list all problems."""

    code = "invalid-manifest"
    hint = (
        "docs/reference/manifest.md describes the fields, 'holdfast pipeline list' shows valid values, "
        "'holdfast pipeline check DIR' checks again"
    )


class InvalidConfig(UsageError):
    """A configuration file of agents or pipelines is invalid; the details list all problems."""

    code = "invalid-config"


class UnsafeHome(UsageError):
    """Other users could write to the home."""

    code = "unsafe-home"


class NotFound(HoldfastError):
    """There is no such task."""

    code = "not-found"
    exit_status = 3
    hint = "'holdfast ls' shows the tasks of this home"


class AmbiguousId(NotFound):
    """A prefix matches more than one task."""

    code = "ambiguous-id"
    hint = "type more of the id"


class NotPossible(HoldfastError):
    """Not possible in the current state."""

    code = "not-possible"
    exit_status = 3


class RequestRefused(NotPossible):
    """The runner refused the request."""

    code = "refused"


class ForPersons(NotPossible):
    """An agent asked for what only a person may ask."""

    code = "for-persons"


class InvalidMove(NotPossible):
    """A task cannot change from one state to the other."""

    code = "invalid-move"


class CorruptFile(NotPossible):
    """A file of a packet has invalid content."""

    code = "corrupt-file"


class ForgedJournal(CorruptFile):
    """A journal was changed by something other than its runner."""

    code = "forged-journal"


class GitMissing(NotPossible):
    """git is required but not installed."""

    code = "git-missing"
    hint = "install git 2.31 or newer, and check PATH"


class GitFailed(NotPossible):
    """A git command failed."""

    code = "git-failed"


class ProcMissing(NotPossible):
    """/proc does not show our own processes, so no process can be told from another."""

    code = "proc-missing"
    hint = (
        "mount it ('mount -t proc proc /proc'), or start the container or chroot with its own /proc; "
        "'ls', 'show' and 'logs' work without"
    )


class StorageError(NotPossible):
    """A file could not be read or written."""

    code = "storage"


class DiskFull(StorageError):
    """The disk is full."""

    code = "disk-full"
    hint = "free some space; no existing data is lost"


class TaskFailed(HoldfastError):
    """The task that was waited for did not complete."""

    code = "task-failed"
    exit_status = 1


class NeedsPerson(TaskFailed):
    """The task that was waited for needs a person."""

    code = "needs-person"
    exit_status = 4


class Abandoned(TaskFailed):
    """The task that was waited for was abandoned."""

    code = "abandoned"
    exit_status = 5


class Unanswered(HoldfastError):
    """There was no answer in time; the request is still pending."""

    code = "unanswered"
    exit_status = 6


class LockHeld(HoldfastError):
    """Another process holds the lock."""

    code = "lock-held"
    exit_status = 75
