#!/usr/bin/env python3
"""Checks `headrace inspect` for programs whose text marks functions `Compiler`. Standard library only.

tests/cli/test_regions.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from typing import Any

from test_cli import OK, USER, CliTest, main, npy

ONE = """#[version = "0.0.5"]
def @grown(%a: Tensor[(3), float32], Compiler="ccompiler", Primitive=1) { exp(add(%a, %a)) }
def @main(%x: Tensor[(3), float32]) { negative(@grown(multiply(%x, 2f))) }
"""
TWO = """#[version = "0.0.5"]
def @grown(%a: Tensor[(3), float32], Compiler="ccompiler", Primitive=1) { exp(add(%a, %a)) }
def @squared(%a: Tensor[(3), float32], Compiler="examplejson", Primitive=1) { multiply(%a, %a) }
def @main(%x: Tensor[(3), float32]) { negative(@squared(@grown(multiply(%x, 2f)))) }
"""
X = (0.0, 0.25, -0.5)
# Two convolutions, and between them an op that no backend computes.
CONVS = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 1, 4, 4), float32]) {
  %0 = nn.conv2d(%x, ones(shape=[2, 1, 3, 3], dtype="float32"), padding=[1, 1, 1, 1]);
  nn.conv2d(round(%0), ones(shape=[1, 2, 1, 1], dtype="float32"))
}
"""


def ops_by_backend(lines: list[str]) -> list[str]:
    """The lines that say how many ops a backend computes."""
    return [line for line in lines if re.match(r"  \d+ ops? by ", line)]


class ListOfBackendsTest(CliTest):
    def test_two_regions_around_an_op_that_stays(self) -> None:
        self.needs_backends("onednn")
        (self.folder / "convs.relay").write_text(CONVS)
        (self.folder / "x16.npy").write_bytes(npy("<f4", (1, 1, 4, 4), struct.pack("<16f", *[1.25] * 16)))
        self.call("compile", "convs.relay", "-o", "convs.so", "--backends", "onednn", check=True)
        lines = self.call("inspect", "convs.so", check=True).stdout.splitlines()
        regions = [f"tvmgen_default_onednn_main_{i}" for i in (0, 1)]
        for name in regions:
            self.assertIn(f"region {name} by onednn, natively as the program {name}", lines)
        self.assertEqual(ops_by_backend(lines), ["  2 ops by onednn", "  1 op by native"])
        run = ("run", "convs.so", "--input", "x=x16.npy", "--output-dir", "out-convs", "--fallback", "none", "--json")
        (output,) = json.loads(self.call(*run, check=True).stdout)["outputs"]
        found = struct.unpack("<16f", (self.folder / output["file"]).read_bytes()[-64:])
        # Sums of 4, 6 or 9 elements of 1.25, rounded (7.5 is 8), of two channels.
        corner, side, middle = 2 * 5, 2 * 8, 2 * 11
        edge, inner = (corner, side, side, corner), (side, middle, middle, side)
        self.assertEqual(found, (*edge, *inner, *inner, *edge))

    def test_times_of_steps_name_the_region(self) -> None:
        self.needs_backends("onednn")
        (self.folder / "convs.relay").write_text(CONVS)
        for command in (("profile", "--rounds", "1"), ("bench", "--steps", "--rounds", "1")):
            verb, *options = command
            shown = self.call(verb, "convs.relay", "--backends", "onednn", *options, check=True).stdout
            self.assertRegex(shown, r"nn\.conv2d \(region tvmgen_default_onednn_main_0\)|main_0\)", shown)

    def test_empty_names_of_backends(self) -> None:
        self.needs_backends("ccompiler", "examplejson")
        (self.folder / "one.relay").write_text(CONVS)
        for names in ("ccompiler,,examplejson", ",ccompiler,examplejson,"):
            shown = self.call("explain", "one.relay", "--backends", names, check=True).stdout
            self.assertEqual(shown, self.call("explain", "one.relay", "--backends", "ccompiler,examplejson").stdout)
        self.assertIn("the name of a backend is empty", self.call("explain", "one.relay", "--backends", "").stderr)

    def test_an_alias_is_the_backend(self) -> None:
        self.needs_backends("onednn")
        text = ONE.replace('"ccompiler"', '"dnnl"').replace("exp(add(%a, %a))", "exp(%a)")
        (self.folder / "alias.relay").write_text(text)
        self.call("compile", "alias.relay", "-o", "alias.so", check=True)
        report = json.loads(self.call("inspect", "alias.so", "--json", check=True).stdout)
        self.assertEqual([region["backend"] for region in report["regions"]], ["onednn"])
        rows = [(row["kind"], row["backend"]) for row in report["programs"][0]["placement"]]
        self.assertEqual(rows, [("multiply", "native"), ("exp", "onednn"), ("negative", "native")])
        (self.folder / "convs.relay").write_text(CONVS)
        explain = ("explain", "convs.relay", "--backends", "onednn", "--json")
        self.call(*explain, "--place", "*:3:*=native", "--save-plan", "own.json", check=True)
        self.call(*explain, "--place", "*:4:3=dnnl", "--place", "*=native", "--save-plan", "given.json", check=True)
        plan = (self.folder / "given.json").read_text()
        self.assertEqual([op["backend"] for op in json.loads(plan)["ops"]], ["native", "native", "onednn"])
        (self.folder / "alias.json").write_text(plan.replace('"onednn"', '"dnnl"'))
        self.call("explain", "convs.relay", "--plan", "alias.json", "--save-plan", "again.json", check=True)
        self.assertEqual((self.folder / "again.json").read_text(), plan)
        self.call("plan", "diff", "alias.json", "given.json", check=True)


class CompilerFunctionsTest(CliTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.needs_backends("ccompiler", "examplejson")
        (cls.folder / "x3.npy").write_bytes(npy("<f4", (3,), struct.pack("<3f", *X)))
        for name, text in (("grown", ONE), ("both", TWO)):
            (cls.folder / f"{name}.relay").write_text(text)
            cls.call("compile", f"{name}.relay", "-o", f"{name}.so", check=True)

    def inspected(self, name: str) -> dict[str, Any]:
        return json.loads(self.call("inspect", name, "--json", check=True).stdout)

    def test_the_text_shows_two_backends(self) -> None:
        done = self.call("inspect", "grown.so")
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        lines = done.stdout.splitlines()
        self.assertIn("region grown by ccompiler, natively as the program grown", lines)
        program = lines[lines.index("region grown by ccompiler, natively as the program grown") + 1 :]
        self.assertTrue(program[0].startswith("program default: 3 steps, "), program)
        self.assertEqual(ops_by_backend(program), ["  2 ops by native", "  2 ops by ccompiler"])

    def test_the_steps_are_those_of_the_text(self) -> None:
        report = self.inspected("grown.so")
        self.assertEqual(report["regions"], [{"name": "grown", "backend": "ccompiler", "fallback": "grown"}])
        program, fallback = report["programs"]
        self.assertEqual((program["name"], fallback["name"]), ("default", "grown"))
        self.assertEqual([step["kind"] for step in program["steps"]], ["kernel", "region", "kernel"])
        self.assertEqual([step["kind"] for step in fallback["steps"]], ["kernel"])
        keys = ("kind", "backend", "region", "reason", "reason_name")
        rows = [tuple(row[key] for key in keys) for row in program["placement"]]
        native = ("native", None, 60, "PLACE_ONLY_NATIVE")
        grown = ("ccompiler", "grown", 61, "PLACE_BY_HAND")
        expected = [("multiply", *native), ("add", *grown), ("exp", *grown), ("negative", *native)]
        self.assertEqual(rows, expected)

    def test_two_functions_of_two_backends(self) -> None:
        regions = [(region["name"], region["backend"]) for region in self.inspected("both.so")["regions"]]
        self.assertEqual(regions, [("grown", "ccompiler"), ("squared", "examplejson")])
        lines = self.call("inspect", "both.so", check=True).stdout.splitlines()
        for line in (
            "external module of kind examplejson, in .headrace.blob.0",
            "region grown by ccompiler, natively as the program grown",
            "region squared by examplejson, natively as the program squared",
        ):
            self.assertIn(line, lines)
        self.assertEqual(ops_by_backend(lines), ["  2 ops by native", "  2 ops by ccompiler", "  1 op by examplejson"])
        self.assertRegex(
            self.call("inspect", "both.so", "--steps", check=True).stdout,
            r"(?m)^0 +kernel .*\n1 +region +grown .*\n2 +region +squared .*\n3 +kernel ",
        )

    def test_the_regions_run(self) -> None:
        for name, power in (("grown.so", 4), ("both.so", 8)):
            run = ("run", name, "--input", "x=x3.npy", "--output-dir", f"out-{name}", "--json")
            (output,) = json.loads(self.call(*run, check=True).stdout)["outputs"]
            found = struct.unpack("<3f", (self.folder / output["file"]).read_bytes()[-12:])
            for x, y in zip(X, found, strict=True):  # a float32 exp and its square: a few units in the last place
                self.assertAlmostEqual(y / -math.exp(power * x), 1, delta=1e-6)

    def test_a_region_that_nothing_compiles_leaves_no_artifact(self) -> None:
        for compiler, pattern in (
            ("null", "the backend 'null' does not compile the region 'grown': the backend takes no op"),
            ("test", r"the compiler 'test', which is not registered: register the function relay\.ext\.test"),
        ):
            (self.folder / "refused.relay").write_text(ONE.replace("ccompiler", compiler))
            self.fails(USER, pattern, "compile", "refused.relay", "-o", "refused.so")
            self.assertFalse((self.folder / "refused.so").exists())


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "regions"))
