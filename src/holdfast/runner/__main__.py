"""`python -m holdfast.runner PACKET`."""

from __future__ import annotations

import sys

from holdfast.runner.main import main

sys.exit(main(sys.argv[1:]))
