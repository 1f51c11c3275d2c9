"""`python -m holdfast.fanout`, in an attempt of the parent task."""

import sys

from holdfast.fanout.loop import main

if __name__ == "__main__":
    sys.exit(main())
