#!/usr/bin/env python3
"""Checks that `headrace verify` finds the region and the op that a backend computes wrongly.

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
OK, USER, MISSING, MISMATCH = 0, 3, 4, 5
TEXT = """#[version = "0.0.5"]
def @main(%a: Tensor[(4, 6), float32], %b: Tensor[(4, 6), float32]) {
  %0 = add(%a, %b);
  %1 = subtract(%0, %a);
  %2 = add(%1, %1);
  nn.relu(add(%2, %b))
}
"""
# Native ops after the subtraction hide its sign.
HIDDEN = """#[version = "0.0.5"]
def @main(%a: Tensor[(4, 6), float32], %b: Tensor[(4, 6), float32]) {
  %0 = add(%a, %b);
  %1 = abs(subtract(%0, %a));
  add(round(%1), %b)
}
"""
# Two regions, since the chip has no abs.
APART = """#[version = "0.0.5"]
def @main(%a: Tensor[(4, 6), float32], %b: Tensor[(4, 6), float32]) {
  %0 = abs(subtract(%a, %b));
  add(%0, %b)
}
"""
# One function for two places.
CALLED_TWICE = """#[version = "0.0.5"]
def @r(%p: Tensor[(4), float32], %q: Tensor[(4), float32], Compiler="chip", Primitive=1, global_symbol="r") {
  subtract(add(%p, %q), %p)
}
def @main(%a: Tensor[(4), float32], %b: Tensor[(4), float32]) {
  %0 = abs(@r(%a, %b));
  abs(@r(%0, ones(shape=[4], dtype="float32")))
}
"""
TUPLE = """#[version = "0.0.5"]
def @r(%p: (Tensor[(4), float32], Tensor[(4), float32]), Compiler="ccompiler", Primitive=1, global_symbol="r") {
  add(%p.0, %p.1)
}
def @main(%a: Tensor[(4), float32], %b: Tensor[(4), float32]) { @r((%a, exp(%b))) }
"""
WRONG = "fault1"  # chip.c that subtracts the other way


def verify(plugin: str, *arguments: str, text: str = TEXT) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.relay"
        model.write_text(text)
        path = Path(OPTIONS.plugins) / f"{plugin}.so"
        chosen = () if "--backends" in arguments else ("--backends", "chip")
        command = [OPTIONS.program, "verify", model, "--plugin", path, *chosen, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=100)


class Compile(unittest.TestCase):
    def test_a_plugin_that_nothing_names_is_noted(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model.relay").write_text(TEXT)
            command = [
                OPTIONS.program,
                "compile",
                "model.relay",
                "-o",
                "m.so",
                "--plugin",
                f"{OPTIONS.plugins}/chip.so",
            ]
            notes = [
                subprocess.run([*command, *more], capture_output=True, text=True, timeout=100, cwd=folder).stderr
                for more in ([], ["--backends", "chip"])
            ]
        self.assertIn("note: the backend 'chip' of ", notes[0])
        self.assertIn("computes nothing here; --backends chip gives it ops", notes[0])
        self.assertEqual(notes[1], "")


class Bisection(unittest.TestCase):
    def test_a_right_backend_is_not_looked_into(self) -> None:
        run = verify("chip", "--json")
        self.assertEqual(run.returncode, OK, run.stdout + run.stderr)
        report = json.loads(run.stdout)
        self.assertIsNone(report["bisection"])
        (region,) = report["regions"]
        self.assertEqual(
            (region["name"], region["backend"], region["ok"], region["note"]),
            ("tvmgen_default_chip_main_0", "chip", True, None),
        )
        self.assertLess(region["error"], 1e-6)  # the outputs of both are float32
        self.assertEqual(region["limit"], 1e-5)

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

    def test_a_fault_that_later_ops_hide(self) -> None:
        run = verify(WRONG, "--json", text=HIDDEN)
        self.assertEqual(run.returncode, MISMATCH, run.stdout + run.stderr)
        report = json.loads(run.stdout)
        self.assertFalse(report["ok"])
        self.assertEqual([output["ok"] for output in report["outputs"]], [True])
        # The second addition has a region of its own, and is right.
        self.assertEqual([region["ok"] for region in report["regions"]], [False, True])
        self.assertEqual(report["bisection"]["region"], "tvmgen_default_chip_main_0")
        self.assertEqual(report["bisection"]["guilty"]["kind"], "subtract")
        self.assertIn("model.relay:4", report["bisection"]["guilty"]["op"])
        words = verify(WRONG, text=HIDDEN)
        self.assertRegex(words.stdout, r"tvmgen_default_chip_main_0 +chip +\S+ +1e-05 +MISMATCH\n")
        self.assertRegex(words.stdout, r"tvmgen_default_chip_main_1 +chip +\S+ +1e-05 +ok\n")
        self.assertIn("MISMATCH: the first region that is wrong is tvmgen_default_chip_main_0", words.stdout)
        self.assertEqual(verify("chip", text=HIDDEN).returncode, OK)
        alone = verify(WRONG, "--no-bisection", "--json", text=HIDDEN)
        self.assertEqual(alone.returncode, MISMATCH)
        self.assertIsNone(json.loads(alone.stdout)["bisection"])

    def test_a_region_that_is_wrong_beside_another(self) -> None:
        """Regions that the backend exchanges: each is right by itself, and no op of them is accused."""
        run = verify("fault40", "--json", text=APART)
        self.assertEqual(run.returncode, MISMATCH, run.stdout + run.stderr)
        found = json.loads(run.stdout)["bisection"]
        self.assertIsNone(found["guilty"])
        self.assertIn("compiled by itself it is right", found["failure"])
        self.assertEqual(verify("chip", text=APART).returncode, OK)

    def test_a_function_that_is_called_twice(self) -> None:
        run = verify("chip", "--json", text=CALLED_TWICE)
        self.assertEqual(run.returncode, OK, run.stdout + run.stderr)
        (region,) = json.loads(run.stdout)["regions"]
        self.assertEqual((region["name"], region["ok"], region["note"]), ("r", True, None))
        run = verify(WRONG, "--json", text=CALLED_TWICE)
        self.assertEqual(run.returncode, MISMATCH, run.stdout + run.stderr)
        self.assertEqual(json.loads(run.stdout)["bisection"]["guilty"]["kind"], "subtract")

    def test_a_region_that_takes_a_tuple(self) -> None:
        run = verify("chip", "--backends", "ccompiler", "--json", text=TUPLE)
        if "was left out of this build" in run.stderr:
            self.skipTest("there is no ccompiler")
        self.assertEqual(run.returncode, OK, run.stdout + run.stderr)
        (region,) = (one for one in json.loads(run.stdout)["regions"] if one["name"] == "r")
        self.assertEqual((region["ok"], region["note"]), (True, None))

    def test_what_options_say_holds(self) -> None:
        run = verify(WRONG, "--place", "*:4*=native")
        self.assertEqual(run.returncode, OK, run.stdout + run.stderr)
        run = verify(WRONG, "--place", "*:4*=chip", "--json")
        self.assertEqual(json.loads(run.stdout)["bisection"]["guilty"]["kind"], "subtract")

    def test_native_code_is_not_charged_to_the_backend(self) -> None:
        run = verify("chip", "--limit", "1e-30", "--json")
        self.assertEqual(run.returncode, MISMATCH)
        found = json.loads(run.stdout)["bisection"]
        self.assertEqual(found, {"region": None, "guilty": None, "compiles": 1, "failure": None})

    def test_a_backend_that_fails_is_not_right(self) -> None:
        """The outputs are those of native code."""
        run = verify("wrong20", "--backends", "wrong20", "--json")
        self.assertEqual(run.returncode, MISMATCH, run.stdout + run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual((report["ok"], [one["ok"] for one in report["outputs"]]), (False, [True]))
        self.assertEqual([region["ok"] for region in report["regions"]], [False])
        self.assertIn("it fell back to native code: the chip is too hot", report["regions"][0]["note"])
        self.assertEqual([one["backend"] for one in report["fallbacks"]], ["wrong20"])
        words = verify("wrong20", "--backends", "wrong20").stdout
        self.assertRegex(words, r"wrong20 +- +- +FAILED: it fell back to native code")
        self.assertIn("the first region that failed is tvmgen_default_wrong20_main_0: wrong20 does not run it", words)
        run = verify("wrong20", "--backends", "wrong20", "--fallback", "none")
        self.assertEqual((run.returncode, run.stdout), (USER, ""))
        self.assertIn("the chip is too hot", run.stderr)

    def test_how_many_ops_the_backend_has(self) -> None:
        report = json.loads(verify("chip", "--json").stdout)
        self.assertEqual(report["ops"], {"native": 0, "chip": 5})
        self.assertIn("5 ops by native, 0 by null\n", verify("chip", "--backends", "null").stdout)

    def test_times_of_native_code_say_so(self) -> None:
        """A file whose backend is not there, timed."""
        with tempfile.TemporaryDirectory() as folder:
            model, file = Path(folder) / "model.relay", Path(folder) / "model.so"
            model.write_text(TEXT)
            plugin = ("--plugin", Path(OPTIONS.plugins) / "chip.so")

            def call(*words: object) -> subprocess.CompletedProcess[str]:
                command = [OPTIONS.program, *map(str, words)]
                return subprocess.run(command, capture_output=True, text=True, timeout=100)

            self.assertEqual(call("compile", model, "-o", file, *plugin, "--backends", "chip").returncode, OK)
            for verb in (("bench",), ("profile",), ("verify", model, "--artifact"), ("bench", "--clients", "2")):
                words = (*verb[:1], *verb[1:], file) if verb[0] == "verify" else (verb[0], file, *verb[1:])
                if verb[0] != "verify":
                    words = (*words, "--rounds", "2")
                done = call(*words)
                self.assertEqual(done.returncode, OK, done.stderr)
                self.assertIn("ran natively, not by chip: ", done.stdout, words)
                self.assertNotIn("ran natively", call(*words, *plugin).stdout)
                strict = call(*words, "--fallback", "none")
                self.assertEqual((strict.returncode, strict.stdout), (MISSING, ""), strict.stderr)
                report = json.loads(call(*words, "--json").stdout)
                (event,) = report["results"][0]["fallbacks"] if "results" in report else report["fallbacks"]
                self.assertEqual(event["reason_name"], "BACKEND_MISSING")

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
