#!/usr/bin/env python3
"""Checks the runtime-only build: the runtime is small, needs nothing but the C and C++ libraries, and runs a network.

    tools/check_runtime.py BUILD [--headrace PROGRAM]

BUILD is the build folder of preset runtime-only. Prints the stripped size of libheadrace_rt.so and the libraries it
needs. With --headrace, that program (of another build) compiles models/digits.onnx, and the runtime-only build's
c-host, which knows only c_api.h, reads the held-out digits with it. Exits 1 when the size passes 1 MB, another library
is needed, an LLVM symbol is visible, or too many digits are read wrongly.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 1_000_000
ALLOWED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
DIGITS, LABELS, CLASSES = ROOT / "models/digits_images.npy", ROOT / "models/digits_labels.npy", 10
MIN_ACCURACY = 0.98


def output_of(*command: str | Path) -> str:
    """The stdout of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def stripped_bytes(image: Path) -> int:
    """The size of an image without symbols."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / image.name
        output_of("strip", "--strip-all", "-o", copy, image)
        return copy.stat().st_size


def needed_by(image: Path) -> list[str]:
    """The libraries that an image names."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", image))


def image_problems(image: Path) -> list[str]:
    """Prints the size and needs of the runtime's image, and returns its problems."""
    size, needed = stripped_bytes(image), needed_by(image)
    llvm_symbols = re.findall(r"\S*(?:LLVM|_ZN4llvm)\S*", output_of("readelf", "--dyn-syms", "-W", image))
    problems = [f"{image.name} needs {name}" for name in needed if name not in ALLOWED]
    problems += [f"{image.name} is {size} bytes stripped, more than {MAX_BYTES}"] if size > MAX_BYTES else []
    problems += [f"{image.name} shows the LLVM symbol {llvm_symbols[0]}"] if llvm_symbols else []
    print(f"{image.name}: {size / 1000:.0f} KB stripped, needs {' '.join(needed)}")
    return problems


def npy_payload(path: Path) -> bytes:
    """The elements of a .npy file of version 1.0, without numpy."""
    content = path.read_bytes()
    return content[10 + int.from_bytes(content[8:10], "little") :]


def digits_problems(c_host: Path, headrace: Path) -> list[str]:
    """Reads the digits one by one, as a host that links only the runtime would."""
    images, labels = npy_payload(DIGITS), npy_payload(LABELS)
    count = len(images) // (8 * 8 * 4)
    width = len(labels) // count
    header = (
        b"\x93NUMPY\x01\x00\x76\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }".ljust(117)
        + b"\n"
    )
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        artifact, image = Path(folder) / "digits.so", Path(folder) / "image.npy"
        output_of(headrace, "compile", ROOT / "models/digits.onnx", "-o", artifact, "--shape", "x=1,1,8,8", "--quiet")
        for i in range(count):
            image.write_bytes(header + images[i * 256 : (i + 1) * 256])
            scores = [float(word) for word in output_of(c_host, artifact, image).splitlines()[-1].split()]
            label = int.from_bytes(labels[i * width : (i + 1) * width], "little")
            right += len(scores) == CLASSES and scores.index(max(scores)) == label
    print(f"c-host: {right} of {count} digits read rightly")
    return [] if right >= MIN_ACCURACY * count else [f"c-host read only {right} of {count} digits rightly"]


def main() -> int:
    """Checks, prints, and gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--headrace", type=Path)
    args = parser.parse_args()
    image, c_host = args.build / "lib/libheadrace_rt.so", args.build / "bin/c-host"
    problems = image_problems(image)
    allowed = ALLOWED | {image.name}
    problems += [f"c-host needs {name}" for name in needed_by(c_host) if name not in allowed]
    if args.headrace is not None:
        problems += digits_problems(c_host, args.headrace)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
