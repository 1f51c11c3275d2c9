"""Run a part of a test whose commands obey file modes, even if the tests are run by root."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable

import pytest

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def without(body: Callable[[], None], *, also: tuple[int, ...] = ()) -> None:
    """Run `body` in a child whose programs cannot pass over the modes of files. Fails as it fails.

    `also`: further capabilities that they lose.

    The child itself still can: only what it executes has lost the power.
    """
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reads)
            if os.geteuid() == 0:
                libc = ctypes.CDLL(None, use_errno=True)
                for power in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, *also):
                    assert libc.prctl(_PR_CAPBSET_DROP, power, 0, 0, 0) == 0
            body()
            status = 0
        except BaseException:
            os.write(writes, traceback.format_exc().encode("utf-8", "replace"))
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writes)
    with open(reads, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        pytest.fail(text, pytrace=False)
