#!/usr/bin/env python3
"""Checks that `headrace backend check` passes a right backend and finds each mistake that was planted in one.

test_conformance.py --program build/release/bin/headrace --plugins build/release/plugins --codegen LIBRARY
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
import build_backends

OPTIONS = argparse.Namespace()
MISMATCH = 5

# FAULT of chip.c: what is wrong, checks (at least one must find it), and the cases that are enough.
FAULTS = {
    1: ("subtract takes its operands the other way", {"result"}, "subtract/float32"),
    2: ("an attribute of clip is ignored", {"result"}, "clip/*"),
    3: ("one constant stands for all", {"result"}, "structure/two_constants"),
    4: ("runs share their memory", {"threads", "crash"}, "structure/*"),
    5: ("a run keeps its memory", {"memory"}, "add/float32"),
    6: ("a blob that is cut off loads", {"cut", "crash"}, "structure/*"),
    7: ("a damaged blob crashes", {"cut", "crash"}, "structure/*"),
    8: ("it writes to an input", {"inputs"}, "add/float32"),
    9: ("it writes past an output", {"crash", "written"}, "add/float32"),
    10: ("it writes before an output", {"written", "crash"}, "add/float32"),
    11: ("an element is not computed", {"result", "written"}, "add/float32"),
    12: ("a run never ends", {"hang"}, "add/float32"),
    13: ("a run ends the process", {"exit"}, "add/float32"),
    14: ("a run aborts", {"crash"}, "add/float32"),
    15: ("it writes to the standard output", {"output"}, "add/float32"),
    16: ("it wants aligned tensors", {"alignment", "written", "inputs"}, "add/float32"),
    17: ("it takes a dtype that it does not compute", {"result", "crash"}, "*/float64"),
    18: ("two compiles differ", {"same_code"}, "add/float32"),
    19: ("it finds regions that are not there", {"unknown"}, "add/float32"),
    20: ("a run depends on those before", {"repeat", "result"}, "add/float32"),
    21: ("it says no without a reason", {"verdict"}, "add/int32"),
    22: ("it reads past an input", {"crash"}, "add/float32"),
    23: ("it takes operands that it does not broadcast", {"result", "crash"}, "add/broadcast*"),
    24: ("it is wrong with several workers", {"threads"}, "add/float32"),
    25: ("unloading keeps memory", {"memory"}, "add/float32"),
    26: ("what it takes it does not compile", {"compile"}, "add/float32"),
    27: ("what is loaded declares other types", {"types"}, "add/float32"),
    28: ("a cost is not a number", {"cost"}, "add/float32"),
    29: ("a border costs less than nothing", {"cost"}, "add/float32"),
    30: ("a region saves infinitely much", {"cost"}, "structure/mixed"),
    31: ("a cost rises each time", {"cost_repeat"}, "add/float32"),
    32: ("costs share their memory", {"cost_threads"}, "structure/mixed"),
    33: ("a cost depends on the place in the file", {"cost_names"}, "add/float32"),
    34: ("asked for the cost of a match, it aborts", {"crash"}, "chip.scaled_relu/*"),
    36: ("a run keeps a large block", {"memory"}, "add/float32"),
    37: ("asked whether it takes an op, it aborts", {"crash"}, "subtract/float32"),
    38: ("asked whether it takes an op, it does not answer", {"hang"}, "subtract/float32"),
    39: ("a run closes the report of its process, and never ends", {"hang"}, "add/float32"),
    40: ("regions are exchanged", {"result"}, "structure/two_regions*"),
    41: ("it compiles the first of two regions", {"compile"}, "structure/two_regions*"),
    42: ("an op after a layer is left out", {"result"}, "structure/*/nn.dense"),
    43: ("the second match is computed in part", {"result"}, "chip.scaled_relu/*"),
    44: ("a region that is marked is not checked", {"marked"}, "marked/*"),
}
# Faults that no other check may find, of a backend that computes rightly.
FIRST_OF_COSTS = 28

# Plugins of mistakes.cc: a check that must find them, the cases that are enough, and a case with such a finding.
MISTAKES = {
    "zeros_for_upsampling": ("result", "*", "nn.upsampling/nearest"),
    "zeros_for_doubles": ("result", "nn.conv2d/*", "nn.conv2d/strides/float64"),
    "throws_in_runs": ("result", "nn.upsampling/nearest", "nn.upsampling/nearest"),
    "throws_in_loads": ("load", "nn.upsampling/nearest", "nn.upsampling/nearest"),
    "throws_in_compiles": ("compile", "nn.upsampling/nearest", "nn.upsampling/nearest"),
}
# The example without a check of one layout: a case of its patterns that must find that.
BLIND = {
    "kernel_blind_convs": "convs.conv/nn.conv2d.kernel_layout",
    "out_blind_convs": "convs.conv_relu/nn.conv2d.out_layout",
    "data_blind_convs": "convs.conv/nn.conv2d.data_layout",
}
MESSAGES = {
    "throws_in_runs": "the chip is too hot",
    "throws_in_loads": "the chip is cold",
    "throws_in_compiles": "the chip is too small",
}


def check(plugin: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = str(Path(OPTIONS.plugins) / f"{plugin}.so")
    command = [OPTIONS.program, "backend", "check", path, "--json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


class ConformanceKit(unittest.TestCase):
    def test_a_right_backend_passes(self) -> None:
        run = check("chip")
        self.assertEqual(run.returncode, 0, run.stdout[-2000:] + run.stderr)
        report = json.loads(run.stdout)
        claimed = [case for case in report["cases"] if case["claimed"]]
        self.assertGreater(len(claimed), 30)
        self.assertTrue(all(case["checks"] > 3 for case in claimed if not case["case"].startswith("marked/")))
        names = {case["case"].split("/")[0] for case in claimed}
        self.assertLessEqual({"add", "clip", "nn.dense", "structure", "chip.scaled_relu"}, names)

    def test_a_backend_that_leaves_its_constants_to_the_host_passes(self) -> None:
        run = check("apart_chip", "--case", "structure/*", "--case", "apart_chip.*", "--case", "nn.dense/*")
        self.assertEqual(run.returncode, 0, run.stdout[-2000:] + run.stderr)
        claimed = {case["case"] for case in json.loads(run.stdout)["cases"] if case["claimed"]}
        self.assertIn("structure/two_constants", claimed)

    def test_each_planted_mistake_is_found(self) -> None:
        def findings_of(fault: int) -> tuple[int, int, set[str], str]:
            run = check(f"fault{fault}", "--case", FAULTS[fault][2], "--timeout", "5")
            cases = json.loads(run.stdout)["cases"] if run.stdout else []
            return fault, run.returncode, {f["check"] for c in cases for f in c["findings"]}, run.stderr

        with ThreadPoolExecutor(2) as pool:
            for fault, code, found, errors in pool.map(findings_of, FAULTS):
                what, expected, _ = FAULTS[fault]
                with self.subTest(fault=fault, what=what):
                    self.assertEqual(code, MISMATCH, errors)
                    self.assertTrue(found & expected, f"found {found}, expected one of {expected}")
                    if fault >= FIRST_OF_COSTS:
                        self.assertEqual(found, expected)

    def test_an_estimate_far_from_the_time_is_a_warning(self) -> None:
        run = check("fault35", "--case", "add/float32")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        (case,) = json.loads(run.stdout)["cases"]
        self.assertEqual(case["findings"], [])
        (warning,) = case["warnings"]
        self.assertEqual(warning["check"], "cost_time")
        self.assertRegex(warning["message"], r"^the estimate is 10 s, and a run takes [\d.]+ (us|ms)$")
        path = str(Path(OPTIONS.plugins) / "fault35.so")
        shown = subprocess.run([OPTIONS.program, "backend", "check", path, "--case", "add/float32"],
                               capture_output=True, text=True, timeout=100).stdout  # fmt: skip
        self.assertIn("\nWARN add/float32 [cost_time]: the estimate is 10 s, ", shown)
        self.assertRegex(shown, r"1 of 1 cases claimed, \d+ checks, all passed, 1 warning\n$")

    def test_costs_of_a_right_backend_are_checked_without_a_warning(self) -> None:
        for plugin in ("pricey_chip", "joining_chip"):
            run = check(plugin, "--case", "structure/*", "--case", "add/float32", "--case", f"{plugin}.*")
            self.assertEqual(run.returncode, 0, run.stdout[-2000:] + run.stderr)
            claimed = [case for case in json.loads(run.stdout)["cases"] if case["claimed"]]
            self.assertGreater(len(claimed), 5)
            self.assertEqual([case["warnings"] for case in claimed if case["warnings"]], [])

    def test_each_mistake_in_cpp_is_found(self) -> None:
        for plugin, (expected, cases, case) in MISTAKES.items():
            with self.subTest(plugin=plugin):
                run = check(plugin, "--case", cases)
                self.assertEqual(run.returncode, MISMATCH, run.stderr)
                findings = {one["case"]: one["findings"] for one in json.loads(run.stdout)["cases"]}
                messages = {finding["check"]: finding["message"] for finding in findings[case]}
                self.assertIn(MESSAGES.get(plugin, "is right"), messages[expected])

    def test_layouts_that_a_pattern_leaves_open_are_varied(self) -> None:
        for plugin, case in BLIND.items():
            with self.subTest(plugin=plugin):
                run = check(plugin, "--case", case)
                self.assertEqual(run.returncode, MISMATCH, run.stdout + run.stderr)
                (report,) = json.loads(run.stdout)["cases"]
                self.assertTrue({f["check"] for f in report["findings"]} & {"result", "crash", "load"}, report)

    def test_a_library_that_does_not_come_back_when_it_is_loaded(self) -> None:
        ended = check("wrong38")
        self.assertEqual((ended.returncode, ended.stdout), (3, ""))
        self.assertIn("wrong38.so' ends the process that loads it, in its headrace_backend_entry", ended.stderr)
        late = check("wrong39", "--timeout", "0.5")
        self.assertEqual((late.returncode, late.stdout), (3, ""))
        self.assertIn("wrong39.so' did not end within 0.5 seconds (--timeout)", late.stderr)

    def test_a_failure_shows_the_program(self) -> None:
        path = str(Path(OPTIONS.plugins) / "fault3.so")
        command = [OPTIONS.program, "backend", "check", path, "--case", "structure/two_constants"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=100)
        self.assertEqual(run.returncode, MISMATCH, run.stderr)
        program = (
            "    def @main(%x: Tensor[(3, 4), float32], %c: Tensor[(3, 4), float32], %d: Tensor[(3, 4), float32]) {\n"
            "    subtract(%c, subtract(%x, %d))\n"
            "    }\n"
            "    // constants: %c, %d\n"
        )
        self.assertRegex(run.stdout, r"FAIL structure/two_constants \[result\]: .* is right\n")
        self.assertIn(program, run.stdout)

    def test_code_that_does_not_load_is_one_finding(self) -> None:
        run = check("throws_in_loads", "--case", "nn.upsampling/nearest")
        (report,) = json.loads(run.stdout)["cases"]
        ((name, message),) = [(f["check"], f["message"]) for f in report["findings"]]
        self.assertEqual(name, "load")
        self.assertIn("the chip is cold", message)
        self.assertNotIn("C++ frames", message)

    def test_a_constant_error_is_found_by_the_result_alone(self) -> None:
        cases = ["sqrt/scalar", "sqrt/one_element", "sqrt/float32", "log/one_element", "acosh/scalar"]
        run = check("off_by_a_bit", *(word for case in cases for word in ("--case", case)))
        reports = json.loads(run.stdout)["cases"]
        self.assertEqual(sorted(one["case"] for one in reports), sorted(cases))
        for report in reports:
            self.assertEqual([f["check"] for f in report["findings"]], ["result"], report)
            self.assertNotIn("nan", report["findings"][0]["message"])

    def test_exceptions_of_questions_are_findings(self) -> None:
        run = check("throws_in_questions", "--case", "sqrt/*", "--case", "tanh/float32")
        self.assertEqual(run.returncode, MISMATCH, run.stderr)
        reports = {one["case"]: one for one in json.loads(run.stdout)["cases"]}
        (finding,) = reports["sqrt/float32"]["findings"]
        self.assertEqual(finding["check"], "verdict")
        self.assertIn("asked about sqrt, it fails: sqrt has no attribute 'axis'", finding["message"])
        self.assertEqual(reports["tanh/float32"]["findings"], [])  # a Refusal is a no

    def test_what_claims_nothing_says_why(self) -> None:
        path = str(Path(OPTIONS.plugins) / "chip.so")
        command = [OPTIONS.program, "backend", "check", path, "--case", "tanh/*", "--case", "add/int32"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=100)
        self.assertEqual(run.returncode, 3)
        self.assertIn("nothing was checked; most often (", run.stdout)
        self.assertIn("it says: the chip does not compute this op", run.stdout)

    def test_an_alias_names_its_backend(self) -> None:
        left_out = build_backends.left_out(OPTIONS.program)
        for backend, alias in {"onednn": "dnnl", "examplejson": "examplejsoncompiler"}.items():
            with self.subTest(alias=alias):
                if why := left_out.get(backend):
                    self.skipTest(why)
                command = [OPTIONS.program, "backend", "check", alias, "--case", "add/float32", "--json"]
                run = subprocess.run(command, capture_output=True, text=True, timeout=100)
                self.assertEqual(run.returncode, 0, run.stderr)
                report = json.loads(run.stdout)
                self.assertEqual(report["backend"], backend)
                self.assertEqual([case["claimed"] for case in report["cases"]], [True])

    def test_a_file_that_is_not_what_the_module_holds(self) -> None:
        if why := build_backends.left_out(OPTIONS.program).get("examplejson"):
            self.skipTest(why)

        def findings_of(backend: str, *arguments: str) -> set[str]:
            command = [OPTIONS.program, "backend", "check", backend, "--case", "add/float32", "--json", *arguments]
            run = subprocess.run(command, capture_output=True, text=True, timeout=100)
            self.assertIn(run.returncode, (0, MISMATCH), run.stderr)
            (case,) = json.loads(run.stdout)["cases"]
            self.assertTrue(case["claimed"])
            return {f["check"] for f in case["findings"]}

        self.assertEqual(findings_of("ported_wrong_file", "--plugin", OPTIONS.codegen), {"file"})
        self.assertEqual(findings_of("examplejson"), set())

    def test_what_cannot_be_checked(self) -> None:
        wrong = check("chip", "--case", "no/such")
        self.assertEqual(wrong.returncode, 3)
        self.assertIn("no case has a name like 'no/such'", wrong.stderr)
        for given, meant in {
            "scaled/*": "did you mean 'chip.scaled_relu/*'?",
            "sotfmax/*": "did you mean 'nn.softmax/*'",
            "nn.rellu/*": "did you mean 'nn.relu/*'",
            "structure/two_region": "did you mean 'structure/*'",
            "conv2d/strides": "did you mean 'nn.conv2d/*'",
            "nn.conv2d/stride": "did you mean 'nn.conv2d/*'",
            "?/*/*": "names are OP/CASE, such as 'nn.conv2d/strides'",
        }.items():
            self.assertIn(meant, check("chip", "--case", given).stderr)
        self.assertIn("there is no file", check("nothing").stderr)
        nothing = check("chip", "--case", "tanh/*")
        self.assertIn("claims none of the cases", nothing.stderr)
        self.assertEqual(nothing.returncode, 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--codegen", required=True, help="the library headrace_ported_codegen")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
