#!/usr/bin/env python3
"""Follows the steps of src/backends/null/README.md in a copy of the sources, and has the compiler check the result.

test_clone_null.py --compiler g++-12
"""

from __future__ import annotations

import argparse
import difflib
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = argparse.Namespace()
sys.path.insert(0, str(ROOT / "tests/docs"))
import run_snippets  # noqa: E402

TOUCHED = ("CMakeLists.txt", "src/driver/all_backends.cc")


class CloneNull(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headrace_clone_"))
        self.addCleanup(shutil.rmtree, self.folder)
        for file in TOUCHED:
            (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.folder / file)
        shutil.copytree(ROOT / "src/backends/null", self.folder / "src/backends/null")

    def added_lines(self, file: str) -> list[str]:
        before, after = ((root / file).read_text().splitlines() for root in (ROOT, self.folder))
        return [line[2:] for line in difflib.ndiff(before, after) if line[0] in "+-"]

    def check_syntax(self, file: str, *options: str) -> None:
        folders = [self.folder / "src", *(ROOT / name for name in ("src", "include", "third_party", "tests"))]
        includes = [word for folder in folders for word in ("-I", str(folder))]
        command = [OPTIONS.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", *includes, *options]
        done = subprocess.run([*command, self.folder / file], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_the_steps_make_a_backend(self) -> None:
        page = ROOT / "src/backends/null/README.md"
        steps = [snippet for snippet in run_snippets.read_snippets(page) if snippet.language == "sh"]
        self.assertEqual(len(steps), 3)
        for step in steps:
            command = ["bash", "-euo", "pipefail", "-c", step.text]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        names = sorted(path.name for path in (self.folder / "src/backends/mine/compile").iterdir())
        self.assertEqual(names, ["mine.cc", "mine.h", "mine_test.cc"])
        self.assertEqual(self.added_lines("CMakeLists.txt"), [
            'option(USE_MINE "Build the backend mine" ON)',
            "if(USE_MINE)",
            "  headrace_room(backends/mine/compile LEVEL 10 SIDE C)",
            "endif()",
            "set_property(SOURCE src/driver/all_backends.cc APPEND PROPERTY COMPILE_DEFINITIONS "
            "HEADRACE_USE_MINE=$<BOOL:${USE_MINE}>)",
        ])  # fmt: skip
        self.assertIn('return "mine";', (self.folder / "src/backends/mine/compile/mine.cc").read_text())
        self.check_syntax("src/backends/mine/compile/mine.cc")
        self.check_syntax("src/backends/mine/compile/mine_test.cc")
        self.check_syntax("src/driver/all_backends.cc", "-DHEADRACE_USE_MINE=1", "-DHEADRACE_USE_NULL=1")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
