"""Commands that see empty folders in place of the sources and of the build: by a mount namespace of their own."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

# Root may mount; others may where the system lets users be root of a namespace of their own.
_WAYS = (("unshare", "--mount"), ("unshare", "--mount", "--map-root-user"))
_COVER = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 125; shift; done; shift; exec "$@"'


def command(words: list[str], folders: list[Path]) -> list[str]:
    """The command that runs `words` while the folders are empty; it needs `why_not` to be empty."""
    # The outer folder comes last: what is in it cannot be covered after it.
    covered = sorted((str(folder.resolve()) for folder in folders), key=len, reverse=True)
    return [*_way(), "sh", "-c", _COVER, "sh", *covered, "--", *words]


def path_without(folders: list[Path]) -> str:
    """The folders of programs, but for those in the folders."""
    outside = [one for one in os.environ.get("PATH", os.defpath).split(os.pathsep) if not _is_in(Path(one), folders)]
    return os.pathsep.join(outside)


def why_not(folders: list[Path], kept: Path) -> str:
    """Why commands that need the folder `kept` cannot run so; "" where they can."""
    if _is_in(kept, folders):
        return f"the folder of temporary files, {kept}, is in what is to be hidden; set TMPDIR to another"
    if shutil.which("cmake", path=path_without(folders)) is None:
        return "cmake is only in the folders that are to be hidden"
    return "" if _way() else "this user may not mount in a namespace of its own (unshare --mount, as root)"


@functools.cache
def _way() -> tuple[str, ...]:
    for way in _WAYS:
        words = [*way, "mount", "-t", "tmpfs", "none", "/mnt"]
        if shutil.which("unshare") and subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return way
    return ()


def _is_in(path: Path, folders: list[Path]) -> bool:
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
