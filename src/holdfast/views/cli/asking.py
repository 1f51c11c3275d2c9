"""What is said after a request was taken: a sentence for people, or the manifest as it is by then."""

from __future__ import annotations

from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli import out

JSON_HELP = "Print the manifest, as it is when the request was taken."


def tell(packet: Packet, sentence: str, *, as_json: bool) -> None:
    """One or the other."""
    out.data(load.read_manifest(packet)) if as_json else out.talk(sentence)
