#!/usr/bin/env python3
"""The man pages of `headrace help --man`: which there are, and that each says what the help says. Standard library
only; without `man` its check of the macros is skipped.

tests/cli/test_manual.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import ClassVar

from test_cli import USAGE, USER, CliTest, main


class ManualTest(CliTest):
    manual: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.manual = cls.folder / "man1"
        cls.manual.mkdir()

    def setUp(self) -> None:
        self.call("help", "--man", self.manual, check=True)

    def names(self, *words: str) -> list[str]:
        """The verbs, or the actions of a verb, that the help lists."""
        _, _, listed = self.call(*words, "--help", check=True).stdout.partition("Subcommands:\n")
        return re.findall(r"(?m)^  ([a-z]+) ", listed)

    def test_each_verb_and_each_action_has_a_page(self) -> None:
        verbs = self.names()
        expected = {"headrace"} | {f"headrace-{verb}" for verb in verbs}
        for verb in verbs:
            expected |= {f"headrace-{verb}-{action}" for action in self.names(verb)}
        self.assertTrue({"headrace-bench", "headrace-pipeline-split"} <= expected)
        self.assertEqual({file.name for file in self.manual.iterdir()}, {f"{name}.1" for name in expected})

    def test_the_options_are_those_of_the_help(self) -> None:
        for words in ((), ("bench",), ("compile",), ("pipeline", "split")):
            text = (self.manual / f"{'-'.join(('headrace', *words))}.1").read_text().replace("\\-", "-")
            told = re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", self.call(*words, "--help", check=True).stdout)
            self.assertEqual(re.findall(r"(?m)^\\fB(?:-\w, )?(--[a-z-]+)", text), told, words)
        bench = (self.manual / "headrace-bench.1").read_text()
        rounds = "Rounds that run first and are not counted (default: 1)"
        self.assertIn(f".TP\n\\fB\\-\\-warmup\\fR \\fI0\\-100000\\fR\n{rounds}\n", bench)
        self.assertIn(".SH SEE ALSO\n.BR headrace (1)\n", bench)
        pipeline = (self.manual / "headrace-pipeline.1").read_text()
        self.assertIn(".TP\n\\fBsplit\\fR\n", pipeline)
        self.assertIn(".BR headrace\\-pipeline\\-split (1)", pipeline)

    @unittest.skipUnless(shutil.which("man"), "there is no man")
    def test_the_macros_are_right(self) -> None:
        environment = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANROFFSEQ": ""}
        for page in sorted(self.manual.iterdir()):
            command = ["man", "--warnings", "-P", "cat", "-l", str(page)]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
            self.assertEqual(done.stderr, "", page.name)
            self.assertIn("NAME", done.stdout)
        self.assertRegex(done.stdout, r"headrace.* - ")

    def test_pages_that_cannot_be_written(self) -> None:
        self.fails(USER, "none/headrace.1", "help", "--man", "none")
        self.fails(USAGE, "--man", "help", "bench", "--man", self.manual)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "manual"))
