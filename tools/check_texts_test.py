#!/usr/bin/env python3
"""Plants texts in each kind of file and sees check_texts.py find those that have a form, and no others."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent / "check_texts.py"


class CheckTextsTest(unittest.TestCase):
    def check(self, file: str, text: str) -> tuple[int, list[str]]:
        """Exit status and the lines of the tool for a folder with this file alone."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            run = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout.splitlines()

    def test_plain_texts_pass(self) -> None:
        text = '// It is no text.\nauto s = "there is no file, is no longer"; /* is none of x */ char c = \'"\';'
        self.assertEqual(self.check("src/a.cc", text), (0, ["plain English: 1 texts"]))
        text = '"""It is no text."""\n\n\ndef f() -> str:\n    """Is none of x."""  # is no text\n    return "a text"\n'
        self.assertEqual(self.check("src/a.py", text), (0, ["plain English: 1 texts"]))

    def test_each_form_is_found(self) -> None:
        for text, found, remedy in (
            ("'x' is no device", "is no d", 'write "is not a"'),
            ("it is none of the inputs", "is none of ", 'write "is not one of"'),
            ("it has not the form a=b", "has not the", 'write "must have" or "does not have"'),
            ("only a run tells the size", "only a run tells", 'write "data-dependent" or "says"'),
            ("3 types, of which 1 are inputs", "of which 1 are", "make two sentences"),
            ("and what else it holds", "what else", "name the things"),
        ):
            line = f'"{found}": {remedy}'
            self.assertEqual(self.check("a.cc", f'\nauto s = "{text}";\n'), (1, [f"a.cc:2: {line}"]))
            self.assertEqual(self.check("a.py", f'x = 1\ny = f"{text}"\n'), (1, [f"a.py:2: {line}"]))
            self.assertEqual(self.check("a.md", f"# A\n\nHere {text}.\n"), (1, [f"a.md:3: {line}"]))

    def test_texts_of_several_literals_are_one(self) -> None:
        text = 'int x;\nauto s = "the value is "\n         "no device";\nauto t = R"(it is none of x)";\n'
        lines = ['a.cc:2: "is no d": write "is not a"', 'a.cc:4: "is none of ": write "is not one of"']
        self.assertEqual(self.check("a.cc", text), (1, lines))

    def test_tests_and_code_blocks_are_left_out(self) -> None:
        for file in ("tests/a.py", "src/a_test.cc", "src/tests/a.cc", "python/test_a.py", "build/a.py"):
            self.assertEqual(self.check(file, 'x = "is no device"\n'), (0, ["plain English: 0 texts"]))
        self.assertEqual(self.check("a.md", "```text\nis no device\n```\n"), (0, ["plain English: 0 texts"]))


if __name__ == "__main__":
    unittest.main()
