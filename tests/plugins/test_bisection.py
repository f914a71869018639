#!/usr/bin/env python3
"""Checks that `headrace verify` finds the op that a backend computes wrongly.

test_bisection.py --program build/release/bin/headrace --plugins build/release/plugins
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

OPTIONS = argparse.Namespace()
OK, MISMATCH = 0, 5
TEXT = """#[version = "0.0.5"]
def @main(%a: Tensor[(4, 6), float32], %b: Tensor[(4, 6), float32]) {
  %0 = add(%a, %b);
  %1 = subtract(%0, %a);
  %2 = add(%1, %1);
  nn.relu(add(%2, %b))
}
"""
WRONG = "fault1"  # chip.c that subtracts the other way


def verify(plugin: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.relay"
        model.write_text(TEXT)
        path = Path(OPTIONS.plugins) / f"{plugin}.so"
        command = [OPTIONS.program, "verify", model, "--plugin", path, "--backends", "chip", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=100)


class Bisection(unittest.TestCase):
    def test_a_right_backend_is_not_looked_into(self) -> None:
        run = verify("chip", "--json")
        self.assertEqual(run.returncode, OK, run.stdout + run.stderr)
        self.assertIsNone(json.loads(run.stdout)["bisection"])

    def test_the_guilty_op_is_named(self) -> None:
        run = verify(WRONG, "--json")
        self.assertEqual(run.returncode, MISMATCH, run.stdout + run.stderr)
        found = json.loads(run.stdout)["bisection"]
        self.assertEqual(found["guilty"]["kind"], "subtract")
        self.assertEqual(found["guilty"]["backend"], "chip")
        self.assertTrue(found["guilty"]["alone"])
        self.assertIn("model.relay:4", found["guilty"]["op"])
        self.assertLessEqual(found["compiles"], 5)  # the program has 5 ops

    def test_in_words(self) -> None:
        run = verify(WRONG)
        self.assertEqual(run.returncode, MISMATCH)
        self.assertRegex(
            run.stdout, r"the error is caused by subtract at \S*model\.relay:4\S*, computed by chip: with this op alone"
        )
        self.assertEqual(run.stderr, "")

    def test_what_options_say_holds(self) -> None:
        run = verify(WRONG, "--place", "*:4*=native")
        self.assertEqual(run.returncode, OK, run.stdout + run.stderr)
        run = verify(WRONG, "--place", "*:4*=chip", "--json")
        self.assertEqual(json.loads(run.stdout)["bisection"]["guilty"]["kind"], "subtract")

    def test_native_code_is_not_charged_to_the_backend(self) -> None:
        run = verify("chip", "--limit", "1e-30", "--json")
        self.assertEqual(run.returncode, MISMATCH)
        found = json.loads(run.stdout)["bisection"]
        self.assertEqual(found, {"guilty": None, "compiles": 1, "failure": None})

    def test_it_can_be_left_out(self) -> None:
        run = verify(WRONG, "--no-bisection", "--json")
        self.assertEqual(run.returncode, MISMATCH)
        self.assertIsNone(json.loads(run.stdout)["bisection"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--plugins", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
