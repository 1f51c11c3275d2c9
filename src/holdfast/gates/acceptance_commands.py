"""Running the acceptance commands: first the setup, then every command, even after one has failed."""

from __future__ import annotations

from holdfast.gates import cannot_start, command, screen
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.gates.cannot_start import Excuse
    from holdfast.gates.command import CommandResult
    from holdfast.gates.room_commands import Links, Setting
    from holdfast.model.spec import SandboxSpec

#: How much of the failing commands' output goes back to the agent.
_EVIDENCE_CHARS = 6000


class Command(Record):
    """One command."""

    text: str
    #: The brief proposed it; otherwise it is the user's.
    is_proposed: bool = False


class Acceptance(Record):
    """The commands, and how they are run."""

    commands: tuple[Command, ...]
    #: They prepare a room.
    setup: tuple[str, ...] = ()
    links: Links
    #: Per command.
    limit_s: float
    #: Where the commands come from that the brief did not propose.
    source: str = "from the manifest"
    title: str
    redact: Callable[[str], str]
    #: The sandbox in which proposed commands run; null if there are none.
    sandbox: SandboxSpec | None = None
    #: Patterns of paths that it does not show.
    forbidden: tuple[str, ...] = ()


class Result(Record):
    """What the commands did. All texts are redacted."""

    #: Why the work is not accepted; empty if it is.
    reasons: tuple[str, ...] = ()
    #: The start of the output of each command that failed.
    evidence: str = ""
    #: Sections of the artifact.
    entries: tuple[str, ...] = ()
    #: By command: its status, as text.
    statuses: tuple[tuple[str, str], ...] = ()
    #: Commands that could not start because something is missing that is not part of the work; and why.
    unstarted: tuple[tuple[str, str], ...] = ()


def run(
    acceptance: Acceptance,
    setting: Setting,
    *,
    for_proposed: Setting | None = None,
    is_excused: Excuse | None = None,
) -> Result:
    """Run the setup, and all commands if it succeeds. Those that an agent proposed may have a setting of
    their own. Those that could not start are noted, if `is_excused` says so."""

    def cannot(text: str, done: CommandResult, chosen: Setting) -> bool:
        if is_excused is None or done.exit_code not in cannot_start.STATUSES:
            return False
        return is_excused(text, cannot_start.probe_in(chosen))

    reasons: list[str] = []
    unstarted: list[tuple[str, str]] = []
    entries: list[str] = []
    evidence: list[str] = []
    statuses: list[tuple[str, str]] = []
    for text in acceptance.setup:
        done = command.run(text, setting=setting, limit_s=acceptance.limit_s, redact=acceptance.redact)
        entries.append(done.entry.replace("## $ ", "## setup: $ ", 1))
        statuses.append((f"setup {text}", done.status))
        if done.failure:
            reasons.append(f"setup: {done.failure}")
            unstarted += [(f"setup {text}", reasons[-1])] if cannot(text, done, setting) else []
            evidence.append(done.evidence)
            break
    for each in acceptance.commands if not reasons else ():
        objection = screen.objection(each.text) if each.is_proposed else None
        if objection is not None:
            shown = command.shortened(acceptance.redact(each.text))
            reasons.append(f"refused to run `{shown}`: {objection}")
            entries.append(f"## $ {each.text}\n\n- refused, not run: {objection}\n")
            statuses.append((each.text, ""))
            continue
        chosen = for_proposed if each.is_proposed and for_proposed is not None else setting
        done = command.run(each.text, setting=chosen, limit_s=acceptance.limit_s, redact=acceptance.redact)
        entries.append(done.entry)
        statuses.append((each.text, done.status))
        if done.failure:
            reasons.append(done.failure)
            unstarted += [(each.text, done.failure)] if cannot(each.text, done, chosen) else []
            evidence.append(done.evidence)
    return Result(
        reasons=tuple(reasons),
        entries=tuple(entries),
        statuses=tuple(statuses),
        unstarted=tuple(unstarted),
        evidence="\n".join(evidence)[:_EVIDENCE_CHARS],
    )
