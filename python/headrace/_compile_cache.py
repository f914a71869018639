"""A folder of compiled models, by a key of all that decides a compile's result.

Entries are artifacts, whose files are loaded as code: so nobody else may write to the folder. They are written under
another name and renamed, so readers see whole files; the loader checks each file's checksum. Whatever is wrong with the
folder's files costs a compile, never a wrong result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments, _core
from headrace._core import UserError
from headrace._ffi import api

_FORMAT = 1  # version of the key's fields
_DEFAULT_BYTES = 2 << 30
_MOST_BYTES_OF_A_MODEL = 1_400_000_000  # larger weights go to a file beside the artifact
_OLD_SECONDS = 3600  # age at which a compile's folder counts as left behind
_PARTS = "headrace-part-"
# The names of what a cache makes. A folder may have other files, which are left alone.
_ENTRY = re.compile(r"[0-9a-f]{48}\.so")
_NOTE = re.compile(r"[0-9a-f]{48}\.json")
_PART = re.compile(_PARTS + "[a-z0-9_]{8}")
_warned: set[str] = set()  # folders
_RECENT_NS = 3_000_000_000  # more than the steps in which file systems count time


class CompileCache:
    """A folder of artifacts that only this user writes to."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder where there is none. UserError for one that another user owns or may write to."""
        self.folder = folder
        with contextlib.suppress(OSError):  # the name may be that of a file
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            status = folder.stat()
        except OSError as error:  # such a folder has no entries and takes none
            _warn(folder, f"cannot be made ({error.strerror}), so every process compiles its models again")
            return
        if not stat.S_ISDIR(status.st_mode):
            raise UserError(f"cache: '{folder}' is not a folder")
        if status.st_uid != os.geteuid():
            raise UserError(
                f"cache: another user owns the folder '{folder}', whose files would be loaded as code; name a "
                "folder of your own"
            )
        if status.st_mode & 0o022:
            raise UserError(
                f"cache: others may write to the folder '{folder}', whose files would be loaded as code; take "
                "that away (chmod 700) or name another"
            )
        if status.st_mode & 0o077:
            self._close()

    def _close(self) -> None:
        """Makes the folder its owner's alone; warns where it has other files, which others may have to read."""
        try:
            if all(_is_own(path.name) for path in self.folder.iterdir()):
                self.folder.chmod(0o700)
                return
        except OSError:  # a file system that does not change modes
            return
        _warn(self.folder, "has other files, too, so others may still look into it; name one for the cache alone")

    def find(self, key: str, threads: int) -> _core.Executor | None:
        """The compiled model of that key, or None. A file that is damaged is removed."""
        path = self._path(key)
        try:
            status = path.lstat()
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return None
        try:
            executor = _core.open_executor(str(path), "default", threads)
        except UserError:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # which says when it was last used
        return executor

    def store(self, key: str, compile_to: Callable[[str], Any]) -> Any | None:
        """Keeps the file that `compile_to` writes and returns its result; None where the file cannot be kept."""
        try:
            part = tempfile.mkdtemp(prefix=_PARTS, dir=self.folder)
        except OSError:
            return None
        try:
            written = Path(part, "model.so")
            executor = compile_to(str(written))
            if not isinstance(executor, _core.Executor) or len(list(Path(part).iterdir())) != 1:
                return None
            written.chmod(0o600)
            written.replace(self._path(key))
        except (OSError, UserError):  # a full disk; or a fault of the model, which the compile in memory reports
            return None
        finally:
            shutil.rmtree(part, ignore_errors=True)
        self._shrink(_limit())
        return executor

    def digests(self, path: str, files_of: Callable[[str], list[str]] | None = None) -> list[list[Any]]:
        """[size, digest] of the file, or of each of the files that `files_of` gives for it, the parts of a model.

        A digest is computed again only where a file's inode, size or times differ from those that were noted with it.
        Files that were written to in the last seconds are not noted: a later write might leave the same times.
        """
        find = files_of or (lambda file: [file])
        if path.startswith("/proc/"):  # a file in memory
            return [_digest(file) for file in find(path)]
        path = str(Path(path).absolute())
        kind = "file" if files_of is None else "model"  # a note of one is none of the other
        name = hashlib.sha256(f"{kind} {path}".encode()).hexdigest()[:48]
        note = self.folder / f"{name}.json"
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            known = json.loads(note.read_text(encoding="utf-8"))["files"]
            if known and all(_times(file) == times for file, times, _ in known):
                return [[times[2], digest] for _, times, digest in known]
        files = find(path)
        times = [_times(file) for file in files]
        digests = [_digest(file) for file in files]
        now = time.time_ns()
        if all(_times(file) == one and max(one[3:]) < now - _RECENT_NS for file, one in zip(files, times, strict=True)):
            found = [[file, one, digest] for file, one, (_, digest) in zip(files, times, digests, strict=True)]
            self._write_note(note, json.dumps({"files": found}))
        return digests

    def entries(self) -> list[tuple[Path, os.stat_result]]:
        """The files with their sizes and times of last use, the least recently used first."""
        found = []
        for path in self._named(_ENTRY):
            with contextlib.suppress(OSError):
                found.append((path, path.lstat()))
        return sorted(found, key=lambda entry: entry[1].st_mtime_ns)

    def clear(self) -> int:
        """Removes all entries; gives how many they were."""
        entries = self.entries()
        for path, _ in entries:
            path.unlink(missing_ok=True)
        for note in self._named(_NOTE):
            note.unlink(missing_ok=True)
        self._remove_parts(0)
        return len(entries)

    def _named(self, pattern: re.Pattern[str]) -> list[Path]:
        with contextlib.suppress(OSError):
            return [path for path in self.folder.iterdir() if pattern.fullmatch(path.name)]
        return []

    def _write_note(self, note: Path, text: str) -> None:
        with contextlib.suppress(OSError):
            handle, part = tempfile.mkstemp(prefix=_PARTS, dir=self.folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(part).replace(note)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.so"

    def _shrink(self, limit: int) -> None:
        entries = self.entries()
        total = sum(status.st_size for _, status in entries)
        for path, status in entries:
            if total <= limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= status.st_size
        self._remove_parts(_OLD_SECONDS)

    def _remove_parts(self, seconds: float) -> None:
        for path in self._named(_PART):
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < time.time() - seconds:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _warn(folder: Path, what: str) -> None:
    """Warns once of a folder, at the line outside of the package that asked for it."""
    if str(folder) in _warned:
        return
    _warned.add(str(folder))
    warnings.warn(f"cache: the folder '{folder}' {what}", RuntimeWarning, stacklevel=_core.caller_level())


def _is_own(name: str) -> bool:
    return name == "costs" or any(one.fullmatch(name) for one in (_ENTRY, _NOTE, _PART))


def default_folder() -> Path:
    """The folder of cache=True: that of HEADRACE_CACHE, or else the user's cache folder."""
    named = os.environ.get("HEADRACE_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace"


def cache_of(cache: bool | str | PathLike[str] | None) -> CompileCache | None:
    """The cache that an argument of compile names; None for none."""
    if cache is False or (cache is None and not os.environ.get("HEADRACE_CACHE")):
        return None
    if cache is None or cache is True:
        return CompileCache(default_folder())
    if not isinstance(cache, (str, PathLike)):
        raise UserError(f"cache: expected True, False or a folder, got {_arguments.kind(cache)}")
    if not os.fspath(cache):
        raise UserError("cache: the name of a folder is empty; give True, False or a folder")
    return CompileCache(Path(_arguments.path(cache, "cache")))


def key_of(
    cache: CompileCache, path: str, files: Mapping[str, str], options: Mapping[str, Any], bound: Mapping[str, Any]
) -> str | None:
    """A text that differs for compiles whose results may.

    None for what is not cached: a program that other texts or Python's functions are part of, a model with more weights
    than an artifact holds, files that cannot be read, ops that this process registered.
    """
    if "headrace.relay._op_registration" in sys.modules:
        return None
    try:
        contents = [cache.digests(path, _core.model_files), *_digests_of(cache, files)]
        if sum(size for own in contents for size, _ in own) > _MOST_BYTES_OF_A_MODEL:
            return None
        is_relay = _core.is_relay_file(path)
        if is_relay:
            text = Path(path).read_bytes()
            if b"import" in text or b"Compiler" in text:
                return None
        digest = _begun([contents, is_relay], files, options)
    except (OSError, UserError):
        return None
    for name in sorted(bound):
        array = _core.array(bound[name], name).numpy()
        digest.update(json.dumps([name, str(array.dtype), list(array.shape)]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:48]


def key_of_module(cache: CompileCache, module: Any, files: Mapping[str, str], options: Mapping[str, Any]) -> str | None:
    """As `key_of`, for a Relay module: its nodes with all their fields, and the elements of its constants.

    None also for a module that JSON cannot hold, such as one with functions of Python among its attributes.
    """
    if "headrace.relay._op_registration" in sys.modules:
        return None
    try:
        text, tensors = api("ir.SaveJSONWithoutTensors")(module)
        if '"Compiler"' in text:
            return None
        digest = _begun([_digests_of(cache, files), "module", len(text)], files, options)
    except (OSError, UserError):
        return None
    digest.update(text.encode())
    total = 0
    for dtype, shape, elements in tensors:
        data = elements.numpy()
        total += data.nbytes
        if total > _MOST_BYTES_OF_A_MODEL:
            return None
        digest.update(json.dumps([dtype, [int(size) for size in shape]]).encode())
        digest.update(data)
    return digest.hexdigest()[:48]


def _digests_of(cache: CompileCache, files: Mapping[str, str]) -> list[list[list[Any]]]:
    return [cache.digests(file) for file in files.values() if file]


def _begun(contents: list[Any], files: Mapping[str, str], options: Mapping[str, Any]) -> Any:
    """A digest of all that a key has beside the program."""
    head = [_FORMAT, _core.__version__, _images(), _machine(), _environment(), _sorted(options), _sorted(files)]
    return hashlib.sha256(json.dumps([*head, *contents]).encode())


def _sorted(values: Mapping[str, Any]) -> list[list[str]]:
    return [[name, repr(values[name])] for name in sorted(values)]


def _digest(path: str) -> list[Any]:
    """[size, digest] of a file's content."""
    digest, size = hashlib.sha256(), 0  # which processors have instructions for
    with Path(path).open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
            size += len(part)
    return [size, digest.hexdigest()]


def _times(path: str) -> list[int]:
    """Device, inode, size, and the times at which a file was written to and changed."""
    status = Path(path).stat()
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


@functools.cache
def _images() -> list[list[Any]]:
    """The compiler's libraries, each with size and time: two builds of one version may compile differently."""
    folders = {Path(_core.__file__).parent}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            if "/libheadrace" in line:
                folders.add(Path(line[line.index("/") :]).parent)
    return [[str(path), *_stamp(path)] for path in sorted(_libraries(folders))]


def _libraries(folders: set[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from folder.glob("libheadrace*.so*")
        yield from folder.glob("_core*.so")


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@functools.cache
def _machine() -> list[Any]:
    """The processor's model, features and cache sizes, and how many processors this process may use."""
    kept = ("vendor_id", "cpu family", "model", "stepping", "flags")
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    lines = [line for line in text.splitlines() if line.partition("\t")[0].strip() in kept]
    sizes = [
        path.read_text(encoding="utf-8").strip()
        for path in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    ]
    return [lines, sizes, os.cpu_count(), len(os.sched_getaffinity(0))]


def _environment() -> list[list[str]]:
    """Headrace's variables, but for those of the cache."""
    return sorted(
        [name, value]
        for name, value in os.environ.items()
        if name.startswith("HEADRACE_") and not name.startswith("HEADRACE_CACHE")
    )


def _limit() -> int:
    """How many bytes the entries may have together."""
    given = os.environ.get("HEADRACE_CACHE_BYTES", "")
    return int(given) if given.isdigit() else _DEFAULT_BYTES
