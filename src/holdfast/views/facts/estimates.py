"""Estimates from the history of a home."""

from __future__ import annotations

from holdfast.model import estimate
from holdfast.packet import metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.estimate import Estimate
    from holdfast.pipeline.define.written_packet import WrittenPacket
    from holdfast.store.layout import Home


def of_packet(home: Home, written: WrittenPacket) -> Estimate:
    """What a packet will probably take, from all tasks of a home, also archived ones."""
    return estimate.estimate(written.resolved.stages, metrics.gather(home))
