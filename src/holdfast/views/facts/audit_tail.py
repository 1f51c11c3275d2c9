"""The tasks that new lines of the audit are about."""

from __future__ import annotations

import os

from holdfast import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home

_READ_BYTES = 1024 * 1024
_FIELD = b'"task_id":"'


class AuditTail:
    """Reads lines that are added to the audit, also across a rotation."""

    def __init__(self, home: Home) -> None:
        self._path = home.audit
        self._descriptor = self._open()
        self._offset = os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def task_ids(self) -> set[str]:
        """The ids in the lines since the last call."""
        ids = self._read()
        while self._is_replaced():
            # Nothing of the old file is left: it was read first, and is renamed only after a line.
            self.close()
            self._descriptor, self._offset = self._open(), 0
            if self._descriptor < 0:
                break
            ids |= self._read()
        return ids

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        try:
            return files.open_regular(self._path)
        except OSError:
            return -1

    def _is_replaced(self) -> bool:
        if self._descriptor < 0:
            return os.path.exists(self._path)
        try:
            return os.stat(self._path).st_ino != os.fstat(self._descriptor).st_ino
        except OSError:
            return False

    def _read(self) -> set[str]:
        ids: set[str] = set()
        while self._descriptor >= 0:
            data = os.pread(self._descriptor, _READ_BYTES, self._offset)
            end = data.rfind(b"\n") + 1
            if end == 0:
                return ids
            self._offset += end
            for piece in data[:end].split(_FIELD)[1:]:
                ids.add(piece.partition(b'"')[0].decode("utf-8", "replace"))
        return ids
