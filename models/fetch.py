#!/usr/bin/env python3
"""Gets the trained models and the picture that are not in the repository, once, into a cache.

    models/fetch.py [--list] [NAME ...]

They come out of two pinned wheels of PyPI, with pip, so its settings (index, proxy, certificates) hold here too. The
cache is .cache/models of the source tree, or the folder that HEADRACE_MODELS names. Each wheel and each file
is held against the sha256 recorded here. The path of every file is printed on stdout, progress on stderr.

Exit codes: 0 all are there, 2 wrong usage, 3 a file is not what was recorded, 4 PyPI cannot be reached.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RETRY_AFTER_SECONDS = 3600


class FetchError(Exception):
    """A wheel or a file is not what was recorded."""


class UnreachableError(FetchError):
    """pip could not get a wheel; the last lines of what it said are in the message."""


@dataclass(frozen=True)
class Wheel:
    """A pinned wheel and the licence of what is taken from it."""

    package: str
    version: str
    sha256: str
    licence: str


@dataclass(frozen=True)
class File:
    """A file inside a wheel."""

    wheel: Wheel
    member: str
    sha256: str


RAPIDOCR = Wheel(
    "rapidocr-onnxruntime",
    "1.4.4",
    "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
    "Apache-2.0",
)
# The picture is the same on every machine, whatever wheel it comes in: the one for x86-64 is taken everywhere.
SCIKIT_IMAGE = Wheel(
    "scikit-image",
    "0.25.2",
    "24cc986e1f4187a12aa319f777b36008764e856e5013666a4a83f8df083c2641",
    "BSD-3-Clause",
)
FILES = {
    "ch_PP-OCRv4_det_infer.onnx": File(
        RAPIDOCR,
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
    ),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": File(
        RAPIDOCR,
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    "ch_PP-OCRv4_rec_infer.onnx": File(
        RAPIDOCR,
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    ),
    "page.png": File(
        SCIKIT_IMAGE,
        "skimage/data/page.png",
        "341a6f0a61557662b02734a9b6e56ec33a915b2c41886b97509dedf2a43b47a3",
    ),
}


def cache_folder() -> Path:
    """Where fetched files lie."""
    chosen = os.environ.get("HEADRACE_MODELS")  # HEADRACE_CACHE is the folder of compiled models
    return Path(chosen) if chosen else ROOT / ".cache" / "models"


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def say(line: str) -> None:
    """A line of progress."""
    print(f"fetch: {line}", file=sys.stderr, flush=True)


def python_with_pip() -> str:
    """This Python, or that of .venv, since Debian's has no pip."""
    if importlib.util.find_spec("pip") is not None:
        return sys.executable
    python = ROOT / ".venv" / "bin" / "python"
    if not python.is_file():
        raise UnreachableError(f"{sys.executable} has no pip, and there is no .venv; ./dev setup makes it")
    return str(python)


def pip_download(wheel: Wheel, folder: Path) -> Path:
    """Downloads a wheel with pip; UnreachableError when pip cannot."""
    # The platform is named, so that every machine and Python gets the wheel whose sha256 is recorded.
    command = [python_with_pip(), "-m", "pip", "download", f"{wheel.package}=={wheel.version}", "--no-deps", "--quiet"]
    command += ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311", "--abi=none"]
    command += ["--platform=manylinux2014_x86_64", "--platform=any", "--dest", str(folder), "--no-input"]
    command += ["--disable-pip-version-check", "--retries=1", "--timeout=20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = " / ".join((done.stderr or done.stdout).strip().splitlines()[-2:])
        raise UnreachableError(
            f"pip could not download {wheel.package} {wheel.version} ({reason}); "
            "this needs PyPI, or pip's own settings for a mirror"
        )
    return wheels[0]


def unpack(wheel: Wheel, path: Path, names: Iterable[str], cache: Path) -> None:
    """Checks a wheel and takes the files out of it; each appears in the cache whole or not at all."""
    found = sha256_of(path)
    if found != wheel.sha256:
        raise FetchError(
            f"{path.name} has the sha256 {found}, recorded is {wheel.sha256}; "
            "the index that pip uses serves another file"
        )
    with zipfile.ZipFile(path) as archive:
        for name in names:
            data = archive.read(FILES[name].member)
            if hashlib.sha256(data).hexdigest() != FILES[name].sha256:
                raise FetchError(f"{FILES[name].member} of {path.name} is not the file that was recorded")
            partial = cache / f".{name}.{os.getpid()}"
            partial.write_bytes(data)
            partial.replace(cache / name)


def failed_lately(cache: Path) -> bool:
    """Whether PyPI could not be reached within the last hour."""
    stamp = cache / "unreachable"
    return stamp.is_file() and time.time() - stamp.stat().st_mtime < RETRY_AFTER_SECONDS


def missing_files(names: Iterable[str], cache: Path) -> list[str]:
    """Those that are not in the cache, or not whole."""
    return [name for name in names if not (cache / name).is_file() or sha256_of(cache / name) != FILES[name].sha256]


def fetch(
    names: Iterable[str] = FILES,
    *,
    try_again: bool = False,
    download: Callable[[Wheel, Path], Path] = pip_download,
) -> dict[str, Path]:
    """The paths of the files by name, after getting those that the cache has not.

    After a failure PyPI is left alone for an hour unless `try_again`, since a machine without it may wait long for each
    refusal. UnreachableError: PyPI cannot be reached; FetchError: what came is not what was recorded.
    """
    cache = cache_folder()
    missing = missing_files(names, cache)
    if missing and not try_again and failed_lately(cache):
        raise UnreachableError("PyPI could not be reached within the last hour; models/fetch.py tries again")
    if missing:
        python_with_pip()  # that there is none says nothing about PyPI
        cache.mkdir(parents=True, exist_ok=True)
    for wheel in dict.fromkeys(FILES[name].wheel for name in missing):
        wanted = [name for name in missing if FILES[name].wheel == wheel]
        say(f"{wheel.package} {wheel.version} ({wheel.licence}) for {', '.join(wanted)}")
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            try:
                path = download(wheel, Path(folder))
            except UnreachableError:
                (cache / "unreachable").touch()
                raise
            unpack(wheel, path, wanted, cache)
    if missing:
        (cache / "unreachable").unlink(missing_ok=True)
    return {name: cache / name for name in names}


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="files to get (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names and where they come from, get nothing")
    args = parser.parse_args(arguments)
    unknown = [name for name in args.names if name not in FILES]
    if unknown:
        parser.error(f"no file is called {', '.join(unknown)}; there are {', '.join(FILES)}")
    if args.list:
        for name, file in FILES.items():
            print(f"{name}  {file.wheel.package} {file.wheel.version}, {file.wheel.licence}")
        return 0
    try:
        for path in fetch(args.names or FILES, try_again=True).values():
            print(path)
    except UnreachableError as error:
        say(str(error))
        return 4
    except FetchError as error:
        say(str(error))
        return 3
    except OSError as error:
        say(f"cannot write to {cache_folder()}: {error.strerror}; HEADRACE_MODELS may name another folder")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
