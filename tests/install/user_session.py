"""A user's session on ResNet-50: see what runs where, edit the plan, compile, run, and run without one of the backends.

    tests/install/user_session.py --write-zoo build/release/bin/write_zoo --wheels dist     # ./dev wheel, in a venv
    tests/install/user_session.py --write-zoo build/release/bin/write_zoo --prefix PREFIX   # cmake --install

It passes when oneDNN computes over 90 % of the ops and native code the one that the edited plan moves; when a run
without oneDNN reports each of its regions and differs by at most 1e-5 of the largest result; when a strict run without
it fails and names the backend; and when a run with it again gives the same bits without a report.

`ctest -R install` runs the session of an install prefix, `HEADRACE_WHEELS=dist ctest -R wheel_session` that of wheels.
The model is the small one; --full takes that of 224x224 pixels.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

BACKENDS = ("--backends", "onednn,ccompiler")
DIFFERENT, MISSING = 5, 4

# Takes the backend onednn away while it is entered.
Unplugged = Callable[[], contextlib.AbstractContextManager[None]]


def run(*command: object, code: int = 0) -> str:
    """Returns what the command prints on stdout, or on stderr where it is to fail; stops at another exit code."""
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    print("$", " ".join(str(part) for part in command), f"-> {done.returncode}")
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done.stdout if code in (0, DIFFERENT) else done.stderr


def write_picture(path: Path, shape: list[int]) -> None:
    count = 1
    for size in shape:
        count *= size
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117) + "\n"
    values = array.array("f", ((i * 37 % 101) / 50 - 1 for i in range(count)))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values.tobytes())


def read_numbers(path: Path) -> list[float]:
    return list(array.array("f", path.read_bytes()[128:]))


def edit_one_convolution(plan: Path, edited: Path) -> None:
    """Moves the first convolution that oneDNN computes to the native code."""
    text = json.loads(plan.read_text())
    row = next(one for one in text["ops"] if one["kind"] == "nn.conv2d" and one["backend"] == "onednn")
    before = next(line for line in plan.read_text().splitlines() if json.dumps(row["name"]) in line)
    after = before.replace('"backend": "onednn"', '"backend": "native"')
    assert before != after, before
    edited.write_text(plan.read_text().replace(before, after))


def outputs_of(program: Path, file: Path, picture: Path, folder: Path) -> tuple[list[float], list[dict]]:
    """Returns the elements of the output, and the regions that fell back."""
    name = json.loads(run(program, "inspect", file, "--json"))["programs"][0]["inputs"][0]["name"]
    report = json.loads(run(program, "run", file, "--input", f"{name}={picture}", "--json", "--output-dir", folder))
    (output,) = folder.glob("*.npy")
    return read_numbers(output), report["fallbacks"]


def session(
    program: Path, unplugged: Unplugged, write_zoo: Path, folder: Path, size: tuple[str, ...] = ("--small",)
) -> None:
    """Runs the session in a folder."""
    run(write_zoo, folder, "resnet50", *size)
    model = folder / "resnet50.onnx"
    page, plan, edited, file = folder / "out.html", folder / "plan.json", folder / "edited.json", folder / "model.so"
    explained = json.loads(
        run(program, "explain", model, *BACKENDS, "--html", page, "--save-plan", plan, "--json")
    )["placement"]  # fmt: skip
    assert sum(row["backend"] == "onednn" for row in explained) > 0.9 * len(explained)
    assert "<html" in page.read_text()
    edit_one_convolution(plan, edited)
    assert "\n1 of " in run(program, "plan", "diff", plan, edited, code=DIFFERENT)
    run(program, "compile", model, "--plan", edited, "-o", file, "--quiet")
    inspected = json.loads(run(program, "inspect", file, "--json"))
    placement = inspected["programs"][0]["placement"]
    assert [row["kind"] for row in placement if row["backend"] == "native"] == ["nn.conv2d"]
    regions = {row["region"] for row in placement if row["backend"] == "onednn"}
    spec = inspected["programs"][0]["inputs"][0]
    picture = folder / "picture.npy"
    write_picture(picture, spec["shape"])
    whole, fallbacks = outputs_of(program, file, picture, folder / "whole")
    assert whole and fallbacks == []

    with unplugged():
        without, fallbacks = outputs_of(program, file, picture, folder / "without")
        assert {event["backend"] for event in fallbacks} == {"onednn"}
        assert {event["region"] for event in fallbacks} == regions
        error = max(abs(one - other) for one, other in zip(whole, without, strict=True))
        assert error <= 1e-5 * max(abs(one) for one in whole), error
        strict = run(program, "run", file, "--input", f"{spec['name']}={picture}", "--fallback", "none", code=MISSING)
        assert "the backend 'onednn' is not installed: there is no '" in strict, strict
        assert "headrace-onednn has it" in strict, strict
    assert outputs_of(program, file, picture, folder / "again") == (whole, [])


def without_library(installed: Path) -> Unplugged:
    """Hides the library of oneDNN's backend, which lies somewhere in `installed`."""

    @contextlib.contextmanager
    def unplugged() -> Iterator[None]:
        (library,) = installed.rglob("libheadrace_onednn.so")
        library.rename(library.with_suffix(".unplugged"))
        try:
            yield
        finally:
            library.with_suffix(".unplugged").rename(library)

    return unplugged


def without_wheel(pip: tuple[object, ...], wheels: Path) -> Unplugged:
    """Uninstalls the wheel headrace-onednn."""

    @contextlib.contextmanager
    def unplugged() -> Iterator[None]:
        run(*pip, "uninstall", "--quiet", "--yes", "headrace-onednn")
        yield
        run(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, "headrace-onednn")

    return unplugged


def session_of_wheels(wheels: Path, write_zoo: Path, folder: Path, size: tuple[str, ...] = ("--small",)) -> None:
    """Installs the wheels, and what they need from PyPI, in a new environment and runs the session there."""
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--find-links", wheels, "headrace[onednn]")
    session(venv / "bin" / "headrace", without_wheel(pip, wheels), write_zoo, folder, size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-zoo", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheels", type=Path)
    source.add_argument("--prefix", type=Path)
    options = parser.parse_args()
    size = () if options.full else ("--small",)
    folder = Path(tempfile.mkdtemp(prefix="headrace_session_"))
    try:
        if options.wheels:
            session_of_wheels(options.wheels, options.write_zoo, folder, size)
        else:
            program = options.prefix / "bin" / "headrace"
            session(program, without_library(options.prefix), options.write_zoo, folder, size)
    finally:
        shutil.rmtree(folder)
    print("the session did what it should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
