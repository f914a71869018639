"""Artifacts that travel by their content: the bytes cross the network once for each node."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments, _public, compiler
from headrace._core import UserError
from headrace.ray._package import ray_package

__all__ = ["ArtifactRef", "artifact_ref"]


@dataclass(frozen=True)
class ArtifactRef:
    """An artifact in Ray's object store, under the hash of its bytes: `artifact_ref` makes one.

    It may be passed to actors and tasks on any node.

    Attributes
    ----------
    name : str
        The file's name, for messages.
    sha256 : str
        The hash of its bytes, in hexadecimal digits.
    size_bytes : int
        How many bytes it has.
    program : str
        Which program of the artifact runs.
    """

    name: str
    sha256: str
    size_bytes: int
    program: str = "default"
    _bytes: Any = field(default=None, repr=False, compare=False)  # the ObjectRef

    def local_path(self) -> Path:
        """Returns the path of the artifact on this node.

        The first call on a node fetches the bytes into a cache folder of the user (`headrace-artifacts-UID` in the
        folder for temporary files) and names the file by its hash. Later calls, also those of other processes, find
        the file. Processes that call at the same time wait for each other, so only one of them fetches and writes.

        Raises
        ------
        UserError
            If the cache folder belongs to another user, or the bytes do not have the hash.
        """
        path = _cache_folder() / f"{self.sha256}.so"
        if _has_hash(path, self.size_bytes, self.sha256):
            return path
        with _locked(path.with_suffix(".lock")):
            if not _has_hash(path, self.size_bytes, self.sha256):
                _write_whole(path, self._fetch())
        return path

    def _fetch(self) -> bytes:
        ray = ray_package()
        data = ray.get(self._bytes, timeout=_FETCH_SECONDS)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise UserError(f"the bytes of the artifact '{self.name}' changed on their way; make a new artifact_ref")
        return data


# An artifact of some gigabytes over a slow network; a longer wait is an error rather than a hang.
_FETCH_SECONDS = 600.0


def artifact_ref(artifact: str | PathLike[str] | compiler.CompiledModel | ArtifactRef) -> ArtifactRef:
    """Puts an artifact into Ray's object store, from which each node fetches it once.

    Parameters
    ----------
    artifact : path, CompiledModel or ArtifactRef
        The file, or a model that was compiled to a file or loaded from one; an ArtifactRef is returned as it is.

    Returns
    -------
    ArtifactRef

    Raises
    ------
    UserError
        For a file that is not an artifact, and a model that was compiled in memory; MissingError, which is one,
        without Ray.
    """
    if isinstance(artifact, ArtifactRef):
        return artifact
    program = "default"
    if isinstance(artifact, compiler.CompiledModel):
        artifact, program = _file_of(artifact)
    path = Path(_arguments.path(artifact, "artifact"))
    compiler.load(path, program=program)  # names what is wrong with the file here rather than in an actor
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return ArtifactRef(path.name, digest, len(data), program, ray_package().put(data))


def local_artifact(artifact: str | PathLike[str] | compiler.CompiledModel | ArtifactRef) -> tuple[str, str]:
    """Returns the path on this node and the program of what a user gave as an artifact."""
    if isinstance(artifact, ArtifactRef):
        return str(artifact.local_path()), artifact.program
    if isinstance(artifact, compiler.CompiledModel):
        return _file_of(artifact)
    return _arguments.path(artifact, "artifact"), "default"


def _file_of(model: compiler.CompiledModel) -> tuple[str, str]:
    """The path and the program of a model."""
    if model.path is None:
        raise UserError(
            "artifact: the model was compiled in memory, and other processes open its file; compile it with "
            "output='model.so'"
        )
    return str(model.path), model.program


def _cache_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"headrace-artifacts-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UserError(f"the cache folder '{folder}' can be written by other users; remove it")
    return folder


def _has_hash(path: Path, size_bytes: int, sha256: str) -> bool:
    """Whether the file has these bytes. A file that was cut or changed is written again."""
    try:
        if path.stat().st_size != size_bytes:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False


def _write_whole(path: Path, data: bytes) -> None:
    """Writes a file beside the path and renames it, so that no reader sees a part of it."""
    number, part = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        Path(part).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(part).unlink()
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock on a file of this node; the end of a process releases its locks."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_public.publish(__name__, "headrace.ray")
