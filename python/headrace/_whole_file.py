"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

_COUNT = itertools.count()


def write_whole(path: str, data: bytes | bytearray) -> None:
    """Writes `data` beside the file and renames it to `path`, so that an error leaves the file of before as it was.

    What is not a file of a folder, such as a pipe or a file in memory, is written in place.

    Raises
    ------
    OSError
        If the data cannot be written.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    if given.exists() and not target.is_file():
        given.write_bytes(data)
        return
    # The stem is cut: the name of the part must not exceed the system's limit where the file's own name is near it.
    part = target.with_name(f"{target.name[:50]}.{os.getpid()}-{next(_COUNT)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
        part.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
