"""Folders that go away."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from headrace import _public

__all__ = ["TempDirectory", "tempdir"]


class TempDirectory:
    """A folder that goes away, with what is in it, when nobody holds this object any more, or its `with` ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-")
        self.temp_dir = self._folder.name

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.temp_dir)

    def relpath(self, name: str) -> str:
        """The full name of a file of that name in the folder."""
        return str(self.path / name)

    def listdir(self) -> list[str]:
        """The names of what is in it, sorted."""
        return sorted(entry.name for entry in self.path.iterdir())

    def remove(self) -> None:
        """Removes it now."""
        self._folder.cleanup()

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def tempdir() -> TempDirectory:
    """A new folder, which goes away with what is in it.

    Returns
    -------
    TempDirectory
    """
    return TempDirectory()


_public.publish(__name__, "headrace.contrib.utils")
