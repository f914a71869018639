#!/usr/bin/env python3
"""Checks that the runtime image is small and needs nothing but the C and C++ libraries.

    tools/size.py LIBHEADRACE_RT

Prints the stripped size and the needed libraries; exits 1 when the size passes 1 MB, another library is needed, or an
LLVM symbol is visible.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

MAX_BYTES = 1_000_000
ALLOWED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def stripped_bytes(image: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / image.name
        subprocess.run(["strip", "--strip-all", "-o", copy, image], check=True)
        return copy.stat().st_size


def read_elf(option: str, image: Path) -> str:
    return subprocess.run(["readelf", option, image], capture_output=True, text=True, check=True).stdout


def main() -> int:
    image = Path(sys.argv[1])
    size = stripped_bytes(image)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", read_elf("-dW", image))
    llvm_symbols = re.findall(r"\S*(?:LLVM|_ZN4llvm)\S*", read_elf("--dyn-syms", image))
    problems = [f"needs {name}" for name in needed if name not in ALLOWED]
    problems += [f"is {size} bytes stripped, more than {MAX_BYTES}"] if size > MAX_BYTES else []
    problems += [f"shows the LLVM symbol {llvm_symbols[0]}"] if llvm_symbols else []
    print(f"{image.name}: {size / 1000:.0f} KB stripped, needs {' '.join(needed)}")
    for problem in problems:
        print(f"{image}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
