"""`python -m holdfast.keeper`."""

from __future__ import annotations

import sys

from holdfast.keeper.main import main

sys.exit(main(sys.argv[1:]))
