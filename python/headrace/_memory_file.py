"""Files without a place in the file system: models that are given as bytes."""

from __future__ import annotations

import os


class MemoryFile:
    """A file in memory with those bytes, which goes with this object or the process, however that ends."""

    def __init__(self, data: bytes) -> None:
        self._file = os.fdopen(os.memfd_create("headrace-model", os.MFD_CLOEXEC), "wb")
        self._file.write(data)
        self._file.flush()

    @property
    def path(self) -> str:
        """The path by which this process can open the file."""
        return f"/proc/self/fd/{self._file.fileno()}"
