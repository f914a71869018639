#!/usr/bin/env python3
"""Parses every file of a configured build with -fsyntax-only: a second compiler's warnings without its code generation.

    tools/check_syntax.py BUILD_DIR

Reads BUILD_DIR/compile_commands.json. Precompiled headers are made first and for real, since the others read them.
Prints what the compiler says and exits 1 when a file fails.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def run(entry: dict) -> tuple[str, subprocess.CompletedProcess]:
    arguments = shlex.split(entry["command"])
    if not is_precompiled_header(entry):
        arguments = [*arguments[: arguments.index("-o")], "-fsyntax-only", "-c", entry["file"]]
    done = subprocess.run(arguments, cwd=entry["directory"], capture_output=True, text=True, check=False)
    return entry["file"], done


def is_precompiled_header(entry: dict) -> bool:
    return "/cmake_pch." in entry["file"]


def main() -> int:
    entries = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
    entries.sort(key=lambda entry: entry["file"])
    headers = [entry for entry in entries if is_precompiled_header(entry)]
    sources = [entry for entry in entries if not is_precompiled_header(entry)]
    failures = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for group in (headers, sources):
            for number, (file, done) in enumerate(pool.map(run, group), 1):
                failures += done.returncode != 0
                print(f"[{number}/{len(group)}] {file}", flush=True)
                if done.stderr.strip():
                    print(done.stderr, flush=True)
    print(f"syntax: {len(sources)} files, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
