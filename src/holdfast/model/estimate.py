"""What a pipeline will probably take, from what its stages took before. Pure.

Figures are the median, and the range in which eight of ten tasks were (p10 to p90). What has no history is
unknown, never zero.
"""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from holdfast.model.spec import StageSpec

#: What is estimated: of a sample → number, or None if it is unknown.
FIGURES = ("calls", "tokens", "cost_usd", "seconds")


class Spread(Record):
    """The distribution of one figure."""

    p10: float
    p50: float
    p90: float


class StageEstimate(Record):
    """What one stage took in earlier tasks."""

    stage: str
    #: The number of tasks in which it was done; with the same model, unless `is_other_model`.
    tasks: int
    is_other_model: bool = False
    #: Figure → spread; unreported figures are missing.
    spread: dict[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**super().to_json(), "spread": _plain(self.spread)}


class Estimate(Record):
    """What a pipeline will probably take."""

    stages: tuple[StageEstimate, ...]
    #: The sum over the stages with a known figure; of parallel stages the longest time counts.
    total: dict[str, Any]
    #: Stages without history.
    unknown: tuple[str, ...]
    #: The number of different tasks it is based on.
    tasks: int

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "stages": [stage.to_json() for stage in self.stages],
            "total": _plain(self.total),
            "unknown": list(self.unknown),
            "tasks": self.tasks,
        }


def _plain(spreads: dict[str, Spread]) -> dict[str, Any]:
    return {name: each.to_json() for name, each in spreads.items()}


def spread(values: Iterable[float]) -> Spread | None:
    """The spread of some values; None without any."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(p10=_quantile(ordered, 0.1), p50=_quantile(ordered, 0.5), p90=_quantile(ordered, 0.9))


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest values, in proportion."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low), 6)


def estimate(stages: Sequence[StageSpec], history: Iterable[dict[str, Any]]) -> Estimate:
    """The estimate of these stages. `history` are the metrics of tasks (`model.metrics.of_task`)."""
    samples: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for task in history:
        for sample in task.get("stages") or ():
            if sample.get("is_done"):
                samples.setdefault(str(sample["stage"]), []).append((str(task["task_id"]), sample))
    found: list[StageEstimate] = []
    used: set[str] = set()
    for stage in stages:
        known = samples.get(stage.name, [])
        same = [each for each in known if each[1].get("model") == stage.model]
        chosen = same or known
        used |= {task_id for task_id, _ in chosen}
        found.append(
            StageEstimate(
                stage=stage.name,
                tasks=len(chosen),
                is_other_model=bool(chosen) and not same,
                spread=_spreads([sample for _, sample in chosen]),
            )
        )
    return Estimate(
        stages=tuple(found),
        total=_total(stages, found),
        unknown=tuple(each.stage for each in found if not each.tasks),
        tasks=len(used),
    )


def _spreads(samples: list[dict[str, Any]]) -> dict[str, Spread]:
    found: dict[str, Spread] = {}
    for name in FIGURES:
        known = [value for sample in samples if (value := _value(sample, name)) is not None]
        if (of := spread(known)) is not None:
            found[name] = of
    return found


def _value(sample: dict[str, Any], name: str) -> float | None:
    if name != "tokens":
        return sample.get(name)
    counts = [sample.get("input_tokens"), sample.get("output_tokens")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _total(stages: Sequence[StageSpec], found: Sequence[StageEstimate]) -> dict[str, Spread]:
    """The sum, figure by figure. Cheap and expensive stages mix, so the real spread is smaller."""
    total: dict[str, Spread] = {}
    for name in FIGURES:
        groups: dict[str, list[Spread]] = {}
        for stage, each in zip(stages, found, strict=True):
            if (of := each.spread.get(name)) is not None:
                key = stage.group if name == "seconds" and stage.group else f"stage {stage.name}"
                groups.setdefault(key, []).append(of)
        if groups:
            total[name] = Spread(
                **{
                    place: round(
                        sum(max(getattr(each, place) for each in group) for group in groups.values()), 6
                    )
                    for place in ("p10", "p50", "p90")
                }
            )
    return total
