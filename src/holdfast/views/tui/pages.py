"""The pages of one task as lines of text: head, timeline, events, diff, gates. They draw nothing."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.views.facts import diff as diffs
from holdfast.views.facts import timeline
from holdfast.views.text import amounts, describe, event_lines, timeline_words
from holdfast.views.tui import styles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rich.style import Style

    from holdfast.model.attempt_numbers import AttemptNumbers
    from holdfast.store.layout import Packet
    from holdfast.views.facts.detail import Detail

    Line = tuple[str, Style]

_BAR_COLUMNS = 30
#: What a line of the timeline says besides the bar should fit.
_WORDS_COLUMNS = 60
_OF_SPAN = {
    "attempt": styles.GOOD,
    "chore": styles.DIM,
    "takeover": styles.QUESTION,
    "wait": styles.WARNING,
    "interrupt": styles.QUESTION,
    "queue": styles.HINT,
}
_BAD_MARKS = frozenset({"crash", "hang", "limit"})
_OF_DIFF = {"+": styles.GOOD, "-": styles.BAD, "@": styles.HINT}


#: States whose reason says no more than they do (`success`, `attempt 1`).
_SAYS_ENOUGH = ("completed", "running")


def head(detail: Detail, now: float) -> list[Line]:
    """What matters most: state, question, usage, what to do next."""
    manifest = detail.manifest
    state = describe.state(manifest)
    parts = [
        state,
        str(manifest.get("agent") or "-"),
        f"stage {manifest['stage']}" if manifest.get("stage") else "",
        clock.duration_text(describe.elapsed_s(manifest, now)),
        amounts.usage(manifest.get("usage"), paid_calls=manifest.get("paid_calls"))
        + amounts.in_runs(manifest),
    ]
    lines: list[Line] = [("  ".join(part for part in parts if part), styles.STATES.get(state, styles.PLAIN))]
    question = detail.question.question if detail.question is not None else ""
    if (reason := describe.reason(manifest, now)) and state not in _SAYS_ENOUGH and reason not in question:
        lines.append((reason, styles.PLAIN))
    if stages := _stages(detail):
        lines.append((stages, styles.DIM))
    if question:
        lines.append((f"asks: {question}", styles.QUESTION))
    if said := manifest.get("last_words"):
        lines.append((f"says: {describe.without_headings(' '.join(str(said).split()))}", styles.PLAIN))
    if concerns := describe.concerns(manifest):
        lines.append((concerns, styles.WARNING))
    steps = detail.next.steps
    if steps:
        lines.append((f"next: {steps[0].command}  ({steps[0].does})", styles.HINT))
    return lines


def _stages(detail: Detail) -> str:
    signs = {"done": "✓", "active": "▶", "failed": "✗", "eliminated": "–"}
    rows: list[dict[str, Any]] = detail.manifest.get("stages") or []
    if len(rows) < 2:
        return ""
    return "  ".join(f"{signs.get(row['state'], '·')} {row['name']}" for row in rows)


def timeline_page(packet: Packet, now: float, width: int = 100) -> list[Line]:
    """Spans as bars on a common time axis, with the marks between them. A narrow screen has short bars."""
    found = timeline.gather(packet)
    spans, marks = found["spans"], found["marks"]
    times: list[float] = [clock.parse_iso(mark["at"]) for mark in marks]
    for span in spans:
        times += [clock.parse_iso(span["begin"]), clock.parse_iso(span["end"]) if span["end"] else now]
    if not times:
        return [("nothing has happened yet", styles.DIM)]
    axis = _Axis(min(times), max(times), max(10, min(_BAR_COLUMNS, width - _WORDS_COLUMNS)))
    items = [(clock.parse_iso(span["begin"]), _span_line(span, axis, now)) for span in spans]
    items += [(clock.parse_iso(mark["at"]), _mark_line(mark, axis)) for mark in marks]
    return [line for _, line in sorted(items, key=lambda item: item[0])]


class _Axis:
    """Times as columns of a bar."""

    def __init__(self, first: float, last: float, room: int) -> None:
        self._first, self._room = first, room
        self._scale = room / max(last - first, 0.001)

    def bar(self, begin: float, end: float | None = None) -> str:
        """A line from begin to end, or a sign at one time."""
        left = min(self._room - 1, int((begin - self._first) * self._scale))
        length = 0 if end is None else max(1, min(self._room - left, round((end - begin) * self._scale)))
        return (" " * left + ("━" * length or "◆")).ljust(self._room)


def _span_line(span: dict[str, Any], axis: _Axis, now: float) -> Line:
    begin = clock.parse_iso(span["begin"])
    end = clock.parse_iso(span["end"]) if span["end"] else now
    bar = axis.bar(begin, end)
    what = span["kind"]
    if span.get("stage"):
        what = f"{span.get('chore') or what} {span.get('ordinal') or ''}".rstrip() + f" of {span['stage']}"
    told = [what, span.get("agent"), span.get("mode"), clock.duration_text(end - begin), span.get("outcome")]
    told += [f"by {span['by']}" if span.get("by") else None, span.get("reason")]
    if span["end"] is None:
        told.append("now")
    text = "  ".join(str(part) for part in told if part)
    style = styles.BAD if span.get("outcome") in ("crashed", "hung") else _OF_SPAN.get(span["kind"])
    return f"{clock.local(span['begin'], '%H:%M:%S')} {bar} {text}", style or styles.PLAIN


def _mark_line(mark: dict[str, Any], axis: _Axis) -> Line:
    bar = axis.bar(clock.parse_iso(mark["at"]))
    is_bad = mark["kind"] in _BAD_MARKS or mark.get("passed") is False
    text = f"{clock.local(mark['at'], '%H:%M:%S')} {bar} {timeline_words.of_mark(mark)}"
    return text, styles.BAD if is_bad else styles.BOLD


def events_page(events: Iterable[dict[str, Any]], numbers: AttemptNumbers) -> list[Line]:
    """Events of the journal, one per line. `numbers` knows the earlier ones."""
    lines: list[Line] = []
    for event in events:
        numbers.apply(event)
        lines.append((event_lines.line(event, numbers), _of_event(event)))
    return lines


def _of_event(event: dict[str, Any]) -> Style:
    kind = str(event.get("type"))
    if kind in ("agent.error", "attempt.void", "request.refused", "journal.forged"):
        return styles.BAD
    if kind == "task.moved":
        return styles.STATES.get(str(event.get("new")), styles.BOLD)
    return styles.DIM if kind.startswith("agent.") else styles.PLAIN


def diff_page(packet: Packet) -> list[Line]:
    """What the task changed. Runs git."""
    try:
        diff = diffs.diff(packet.home, packet.task_id)
    except HoldfastError as error:
        return [(str(error), styles.DIM)]
    if not diff.files:
        return [("no changes", styles.DIM)]
    count = amounts.plural(len(diff.files), "file")
    lines: list[Line] = [(f"{count}, +{diff.added} -{diff.deleted}", styles.BOLD)]
    for file in diff.files:
        counted = "binary" if file.is_binary else f"+{file.added} -{file.deleted}"
        lines.append(("", styles.PLAIN))
        lines.append((f"{file.kind} {file.path}  {counted}", styles.BOLD))
        if file.left_out:
            lines.append((f"not shown: {file.left_out}", styles.DIM))
        for hunk in file.hunks:
            lines.append((f"@@ {hunk.old_start} → {hunk.new_start} {hunk.section}".rstrip(), styles.HINT))
            lines += [(text, _OF_DIFF.get(text[:1], styles.PLAIN)) for text in hunk.lines]
    lines += [(f"outside its scope: {path}", styles.WARNING) for path in diff.left_out]
    return lines


def gates_page(detail: Detail) -> list[Line]:
    """What each gate concluded, the last one first."""
    lines: list[Line] = []
    for gate in reversed(detail.gates):
        result = "passed" if gate.passed else f"failed: {gate.failed}"
        at = clock.local(gate.at, "%H:%M:%S")
        style = styles.GOOD if gate.passed else styles.BAD
        lines.append((f"{at} {gate.stage}, attempt {gate.ordinal or gate.attempt}: {result}", style))
        lines += [(f"  {'✓' if check.passed else '✗'} {check.name}", styles.PLAIN) for check in gate.checks]
        lines += [(f"  {reason}", styles.PLAIN) for reason in gate.reasons]
        lines += [(f"  warning: {warning}", styles.WARNING) for warning in gate.warnings]
        lines += [(f"    {line}", styles.DIM) for line in gate.evidence.splitlines()]
        lines.append(("", styles.PLAIN))
    return lines or [("no gate has judged anything yet", styles.DIM)]
