"""A user's session on ResNet-50: see what runs where, edit the plan, compile, run, and run without one of the backends.

    tests/install/user_session.py --write-zoo build/release/bin/write_zoo --wheel headrace.whl   # in a fresh venv
    tests/install/user_session.py --write-zoo build/release/bin/write_zoo --prefix PREFIX        # cmake --install

--wheel takes what `pip wheel --no-deps .` writes. `ctest -R install` runs the session of an install prefix.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

BACKENDS = ("--backends", "onednn,ccompiler")
DIFFERENT, MISSING = 5, 4


def run(*command: object, code: int = 0) -> str:
    """Returns what the command prints on stdout; fails if its exit code is another."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    print("$", " ".join(str(part) for part in command), f"-> {done.returncode}")
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done.stdout


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


def session(program: Path, installed: Path, write_zoo: Path, folder: Path) -> None:
    """Runs the session. `installed` is the folder in which the library of oneDNN's backend lies somewhere."""
    run(write_zoo, folder, "resnet50", "--small")
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
    spec = inspected["programs"][0]["inputs"][0]
    picture = folder / "picture.npy"
    write_picture(picture, spec["shape"])
    whole, fallbacks = outputs_of(program, file, picture, folder / "whole")
    assert whole and fallbacks == []

    (library,) = installed.rglob("libheadrace_onednn.so")
    library.rename(library.with_suffix(".unplugged"))
    try:
        without, fallbacks = outputs_of(program, file, picture, folder / "without")
        assert {event["backend"] for event in fallbacks} == {"onednn"}
        error = max(abs(one - other) for one, other in zip(whole, without, strict=True))
        assert error <= 1e-5 * max(abs(one) for one in whole), error
        run(program, "run", file, "--input", f"{spec['name']}={picture}", "--fallback", "none", code=MISSING)
    finally:
        library.with_suffix(".unplugged").rename(library)
    assert outputs_of(program, file, picture, folder / "again") == (whole, [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-zoo", type=Path, required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path)
    source.add_argument("--prefix", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headrace_session_"))
    try:
        installed = options.prefix
        if options.wheel:
            installed = folder / "venv"
            run(sys.executable, "-m", "venv", installed)
            run(installed / "bin" / "python", "-m", "pip", "install", "--quiet", options.wheel)
        session(installed / "bin" / "headrace", installed, options.write_zoo, folder)
    finally:
        shutil.rmtree(folder)
    print("the session did what it should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
