"""`python -m holdfast`."""

from __future__ import annotations

from holdfast.views.cli.entry import main

main()
