#!/usr/bin/env python3
"""The program as a user meets it: help, JSON, and what it says to every kind of mistake. Standard library only.

tests/cli/test_cli.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/kit"))
import build_backends  # noqa: E402
import junit  # noqa: E402

DIGITS = ROOT / "models/digits.onnx"
ONE = ("--shape", "x=1,1,8,8")
VERBS = ("compile", "explain", "plan", "profile", "run", "inspect", "bench", "verify", "targets")
OK, USAGE, USER, MISSING, MISMATCH = 0, 2, 3, 4, 5


def npy(dtype: str, shape: tuple[int, ...], data: bytes) -> bytes:
    """The bytes of a .npy file."""
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protobuf message; its number is below 16, an integer below 128, bytes are below 16384."""
    if isinstance(value, int):
        return bytes((number << 3, value))
    length = len(value)
    return bytes((number << 3 | 2, *([length] if length < 128 else [length & 127 | 128, length >> 7]))) + value


def onnx_model(
    *outputs: bytes,
    operand: bytes = b"",
    declared_dtype: int = 1,
    source: bytes = b"x",
    length: int = 2,
    op: bytes = b"Neg",
) -> bytes:
    """An ONNX model whose outputs are the negative (or another `op`) of its input x, a float32 vector of `length`, or
    the sum of x and the initialiser w that is encoded in `operand`. `source`: another name for x."""
    shape = field(2, field(1, field(1, length)))
    kind, declared = (field(2, field(1, field(1, dtype) + shape)) for dtype in (1, declared_dtype))
    what = field(1, source) + field(1, b"w") + field(4, b"Add") if operand else field(1, source) + field(4, op)
    graph = b"".join(field(1, what + field(2, name)) for name in outputs)
    graph += field(2, b"g") + (field(5, operand) if operand else b"") + field(11, field(1, source) + kind)
    graph += b"".join(field(12, field(1, name) + declared) for name in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


class CliTest(unittest.TestCase):
    """A folder with good and bad files; every test runs the program in it."""

    program: ClassVar[Path]
    folder: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        model = DIGITS.read_bytes()
        files = {
            "softmix.onnx": model.replace(b"Softmax", b"Softmix"),
            "half.onnx": model[:40000],
            "text.onnx": b"not a model\n",
            "empty.onnx": b"",
            "x.npy": npy("<f4", (1, 1, 8, 8), struct.pack("<64f", *range(64))),
            "f64.npy": npy("<f8", (1, 1, 8, 8), bytes(512)),
            "several.npy": npy("<f4", (5, 1, 8, 8), struct.pack("<320f", *range(320))),
            "wide.npy": npy("<f4", (1, 1, 8, 9), bytes(288)),
            "short.npy": npy("<f4", (1, 1, 8, 8), bytes(100)),
            "words.npy": npy("<U4", (1,), bytes(16)),
            "text.npy": b"1 2 3\n",
            "bool.npy": npy("|b1", (2,), b"\x01\x02"),
            "skip.relay": b'#[version = "0.0.5"]\ndef @main(%x: float32, SkipOptimization=1) { nn.relu(%x) }\n',
            "pair.npy": npy("<f4", (2,), struct.pack("<2f", float("nan"), 3)),
            "twins.onnx": onnx_model(b"a/b", b"a:b"),
            "latin.onnx": onnx_model(b"\xe9t\xe9"),
            "bad.relay": b'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%y) }\n',
        }
        for name, data in files.items():
            (cls.folder / name).write_bytes(data)
        (cls.folder / "folder.relay").mkdir()
        cls.call("compile", DIGITS, "-o", "one.so", *ONE, check=True)
        artifact = bytearray((cls.folder / "one.so").read_bytes())
        (cls.folder / "half.so").write_bytes(artifact[: len(artifact) // 2])
        artifact[len(artifact) // 3] ^= 1
        (cls.folder / "flipped.so").write_bytes(artifact)
        (cls.folder / "empty.so").write_bytes(b"")

    @classmethod
    def call(cls, *arguments: object, check: bool = False, **environment: str) -> subprocess.CompletedProcess:
        """Runs the program."""
        command = [str(cls.program), *map(str, arguments)]
        env = os.environ | environment
        return subprocess.run(
            command, cwd=cls.folder, env=env, capture_output=True, text=True, timeout=120, check=check
        )

    @classmethod
    def needs_backends(cls, *names: str) -> None:
        """Skips the test, or in setUpClass its class, where the build leaves out one of these backends."""
        for name, why in build_backends.left_out(str(cls.program)).items():
            if name in names:
                raise unittest.SkipTest(why)

    def fails(self, code: int, pattern: str, *arguments: object, **environment: str) -> None:
        """The call ends with that exit code, an empty stdout and a message that matches."""
        with self.subTest(arguments=" ".join(map(str, arguments))):
            self.is_failure(self.call(*arguments, **environment), code, pattern)

    def is_failure(self, done: subprocess.CompletedProcess, code: int, pattern: str) -> None:
        """The program ended with that exit code, an empty stdout and a message that matches."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aheadrace: ")
        self.assertRegex(done.stderr, pattern)
        self.assertNotIn("defect", done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 4, done.stderr)


class HelpTest(CliTest):
    def test_the_program_says_what_it_does(self) -> None:
        done = self.call("--help")
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        for verb in VERBS:
            self.assertRegex(done.stdout, rf"\n  {verb} +[A-Z]")
        self.assertIn("Exit codes: 0 fine", done.stdout)

    def test_every_verb_has_help_with_an_example(self) -> None:
        for verb in VERBS:
            done = self.call(verb, "--help")
            self.assertEqual((done.returncode, done.stderr), (OK, ""))
            self.assertIn(f"Example: headrace {verb} ", done.stdout)
            self.assertIn("--json", done.stdout)

    def test_wrong_usage(self) -> None:
        self.fails(USAGE, "name a verb: compile, explain, plan, profile, run, inspect, bench, verify")
        self.fails(USAGE, "name a verb", "--json")
        self.fails(USAGE, "needs a value .FILE., and '--json' is an option", "compile", DIGITS, *ONE, "-o", "--json")
        self.fails(USAGE, "needs a value .FOLDER., and '-x' is an option", "run", "one.so", "--output-dir", "-x")
        self.fails(USAGE, "there is no verb 'frob'; the verbs are compile, explain", "frob")
        self.fails(USAGE, "headrace --help", "frob")
        for verb in VERBS:
            self.fails(USAGE, rf"no option '--frob'[^$]*headrace {verb} --help", verb, "--frob")
            if verb != "targets":  # it takes nothing
                self.fails(USAGE, "name an action: diff\n" if verb == "plan" else "is required", verb)
        self.fails(USAGE, "'more' is one argument too many\n", "run", "one.so", "more")
        self.fails(USAGE, "'m.so' is one argument too many; the output is named by -o", "compile", DIGITS, "m.so")
        self.fails(USAGE, "--output is required: The artifact to write", "compile", DIGITS)
        self.fails(USAGE, "--seed needs a value", "verify", DIGITS, "--seed")
        self.fails(USAGE, "--seed is given 2 times; give it once", "verify", DIGITS, "--seed", "1", "--seed", "2")


class JsonPageTest(CliTest):
    """Compares reports with the examples of docs/cli-json.md."""

    @staticmethod
    def example_of(verb: str) -> Any:
        """The example in the verb's section."""
        page = (ROOT / "docs/cli-json.md").read_text()
        section = re.search(rf"^## {verb}\n(.*?)(?=^## |\Z)", page, re.M | re.S).group(1)
        return json.loads(re.search(r"```json\n(.*?)```", section, re.S).group(1))

    def like(self, example: Any, actual: Any, where: str) -> None:
        """Checks that a value has the example's keys in the same order, and the same types."""
        self.assertIs(type(actual), type(example), where)
        if isinstance(example, dict):
            self.assertEqual(list(actual), list(example), where)
            for key, value in example.items():
                self.like(value, actual[key], f"{where}.{key}")
        elif isinstance(example, list) and example:
            self.assertTrue(actual, where)
            for item in actual:
                self.like(example[0], item, f"{where}[]")

    def report(self, verb: str, *arguments: object, code: int = OK) -> Any:
        """The object, after comparing it with the page's."""
        done = self.call(*verb.split(), *arguments, "--json")
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        report = json.loads(done.stdout)
        self.like(self.example_of(verb), report, verb)
        return report


class JsonTest(JsonPageTest):
    """docs/cli-json.md is true."""

    def test_compile(self) -> None:
        report = self.report("compile", DIGITS, "-o", "json.so", *ONE)
        self.assertEqual(report["bytes"], (self.folder / "json.so").stat().st_size)
        self.assertEqual(report["output"], "json.so")

    def test_the_ending_names_the_format(self) -> None:
        for name, begins in (("f.so", b"\x7fELF"), ("f.o", b"\x7fELF"), ("f.ll", b"; ModuleID"), ("f.s", b"\t.")):
            report = self.report("compile", DIGITS, "-o", name, *ONE)
            data = (self.folder / name).read_bytes()
            self.assertTrue(data.startswith(begins), (name, data[:20]))
            self.assertEqual(report["bytes"], len(data))
        (kind,) = struct.unpack_from("<H", (self.folder / "f.o").read_bytes(), 16)
        self.assertEqual(kind, 1)  # ET_REL
        said = self.call("compile", DIGITS, "-o", "f.ll", *ONE, check=True).stdout
        self.assertIn("it holds the kernels alone; what runs a model is a .so or .o", said)
        pattern = (
            "cannot write 'f.dll': there is no format 'dll'; a compiled module is saved as one of so, o, ll, s, asm, c"
        )
        self.fails(USER, pattern, "compile", DIGITS, "-o", "f.dll", *ONE)
        self.assertFalse((self.folder / "f.dll").exists())
        self.report("compile", DIGITS, "-o", "f.so.1", *ONE)
        self.assertEqual((self.folder / "f.so.1").read_bytes(), (self.folder / "f.so").read_bytes())
        self.report("inspect", "f.so.1")
        pattern = "cannot write '.o': the name is an ending alone; name a file, such as model.o"
        self.fails(USER, pattern, "compile", DIGITS, "-o", ".o", *ONE)
        self.fails(USER, "it is an object file, no shared object; link it into a shared library", "inspect", "f.o")

    def test_compile_dumps_loops(self) -> None:
        self.report("compile", DIGITS, "-o", "dumped.so", "--dump-tir", "loops", "--verify-each", *ONE)
        lowered, final = (sorted((self.folder / "loops").glob(f"*[!d]{end}")) for end in (".lowered.tir", ".tir"))
        self.assertGreater(len(lowered), 2)
        for path in lowered + final:
            self.assertTrue(path.read_text().startswith('#[tir_version = "1"]'), path)
        self.fails(USER, "cannot be made", "compile", DIGITS, "-o", "n.so", "--dump-tir", "one.so/loops", *ONE)

    def test_notes(self) -> None:
        text = (
            '  %0 = arange(0f, 4096f, 1f, dtype="float32");\n  add(%x, multiply(%0, reshape(%0, newshape=[4096, 1])))\n'
        )
        text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1), float32]) {{\n{text}}}\n'
        (self.folder / "large.relay").write_text(text)
        done = self.call("compile", "large.relay", "-o", "large.so", "--json", check=True)
        (note,) = json.loads(done.stdout)["notes"]
        self.assertEqual(list(note), ["reason", "reason_name", "pass", "message", "place"])
        self.assertEqual((note["reason"], note["reason_name"], note["pass"]), (50, "FOLD_LIMIT", "FoldConstant"))
        program = self.report("inspect", "large.so")["programs"][0]
        (kept,) = program["notes"]
        self.assertEqual(list(kept), ["pass", "op", "reason", "reason_name", "message"])
        self.assertEqual(
            {key: kept[key] for key in ("reason", "reason_name", "message")},
            {key: note[key] for key in ("reason", "reason_name", "message")},
        )

    def test_targets(self) -> None:
        report = self.report("targets")
        (llvm,) = report["kinds"]
        self.assertEqual([llvm["name"], llvm["device_type"], llvm["device"], llvm["keys"]], ["llvm", 1, "cpu", ["cpu"]])
        self.assertEqual([row["name"] for row in llvm["options"]], ["mtriple", "mcpu", "mattr", "num-cores", "extern"])
        self.assertIn({"name": "cpu/x86-64-v3", "target": "llvm -keys=cpu -mcpu=x86-64-v3"}, report["tags"])

    def test_run(self) -> None:
        (output,) = self.report("run", "one.so", "--input", "x=x.npy", "--output-dir", "out")["outputs"]
        self.assertEqual((output["name"], output["shape"]), ("probabilities", [1, 10]))
        self.assertTrue((self.folder / output["file"]).is_file())
        self.assertAlmostEqual(output["mean"], 0.1, places=6)
        bare = json.loads(self.call("run", "one.so", "--input", "x=x.npy", "--json").stdout)
        self.assertIsNone(bare["outputs"][0]["file"])

    def test_files_of_narrow_elements(self) -> None:
        text = "def @main(%x: Tensor[(4), float8_e4m3fn], %y: Tensor[(2), int4]) {\n"
        text += '  (cast(cast(%x, dtype="float32"), dtype="float8_e5m2"), reshape(%y, newshape=[2, 1]))\n}\n'
        (self.folder / "narrow.relay").write_text('#[version = "0.0.5"]\n' + text)
        self.call("compile", "narrow.relay", "-o", "narrow.so", check=True)
        (program,) = self.report("inspect", "narrow.so")["programs"]
        self.assertEqual([port["dtype"] for port in program["inputs"]], ["float8_e4m3fn", "int4"])
        codes = b"\x38\x7e\x80\x30"  # 1, 448, -0 and 0.5
        # ml_dtypes writes some of its dtypes as raw bytes and some as floats of one byte.
        for descr in ("|u1", "|V1", "<f1"):
            (self.folder / "narrow.npy").write_bytes(npy(descr, (4,), codes))
            (self.folder / "four.npy").write_bytes(npy("|i1", (2,), b"\xff\x07"))
            run = ("run", "narrow.so", "--input", "x=narrow.npy", "--input", "y=four.npy", "--output-dir", "out")
            floats, fours = self.report(*run)["outputs"]
            self.assertEqual((floats["dtype"], fours["dtype"], fours["shape"]), ("float8_e5m2", "int4", [2, 1]))
            self.assertEqual((self.folder / floats["file"]).read_bytes()[-4:], b"\x3c\x5f\x80\x38")
            self.assertEqual((self.folder / fours["file"]).read_bytes()[-2:], b"\xff\x07")
        (self.folder / "narrow.npy").write_bytes(npy("<f4", (4,), bytes(16)))
        self.fails(USER, r"x\.astype\(ml_dtypes\.float8_e4m3fn\)", *run)

    def test_an_output_of_a_size_that_the_data_tells(self) -> None:
        text = "def @main(%x: Tensor[(1, 1, 8, 8), float32]) { argwhere(%x) }\n"
        (self.folder / "places.relay").write_text('#[version = "0.0.5"]\n' + text)
        self.call("compile", "places.relay", "-o", "places.so", check=True)
        (output,) = self.report("run", "places.so", "--input", "x=x.npy", "--output-dir", "places")["outputs"]
        self.assertEqual(output["shape"], [63, 4])  # the first element is 0
        (program,) = self.report("inspect", "places.so")["programs"]
        self.assertEqual(program["outputs"][0]["shape"], [64, 4])
        self.assertEqual(program["bounded_outputs"], [{"output": "output0", "axis": 0}])
        self.assertIn("64x4, the size of axis 0 depends on the data", self.call("inspect", "places.so").stdout)
        self.assertTrue(self.report("verify", "places.relay", "--input", "x=x.npy")["ok"])

    def test_an_op_without_a_compute_rule(self) -> None:
        text = "def @main(%x: Tensor[(1), float32]) { let %s = memory.alloc_storage(size=64); %x }\n"
        (self.folder / "storage.relay").write_text('#[version = "0.0.5"]\n' + text)
        refused = self.call("compile", "storage.relay", "-o", "storage.so")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("no compute rule for 'memory.alloc_storage', so it cannot be compiled", refused.stderr)
        self.assertIn("relay.op.register_compute gives an op one (docs/user-ops.md)", refused.stderr)
        self.assertFalse((self.folder / "storage.so").exists())

    def test_outputs_whose_files_would_be_one(self) -> None:
        self.call("compile", "twins.onnx", "-o", "twins.so", check=True)
        run = ("run", "twins.so", "--input", "x=pair.npy", "--output-dir", "out", "--json")
        outputs = json.loads(self.call(*run, check=True).stdout)["outputs"]
        self.assertEqual([one["file"] for one in outputs], ["out/a_b.npy", "out/a_b.1.npy"])
        first, second = ((self.folder / one["file"]).read_bytes() for one in outputs)
        self.assertEqual(first, second)

    def test_elements_that_are_no_numbers_are_counted(self) -> None:
        self.call("compile", "twins.onnx", "-o", "twins.so", check=True)
        (output, _) = json.loads(self.call("run", "twins.so", "--input", "x=pair.npy", "--json").stdout)["outputs"]
        self.assertEqual([output[key] for key in ("min", "max", "mean", "non_finite")], [-3, -3, -3, 1])

    def test_inspect(self) -> None:
        report = self.report("inspect", "one.so")
        (program,) = report["programs"]
        self.assertEqual(report["bytes"], (self.folder / "one.so").stat().st_size)
        (only,) = program["inputs"]
        self.assertEqual(only, {"name": "x", "dtype": "float32", "shape": [1, 1, 8, 8], "location": "cpu:0",
                                "dims": ["n", "", "", ""]})  # fmt: skip
        text = self.call("inspect", "one.so", check=True).stdout
        self.assertIn("\n  input  x: float32 n=1 x 1 x 8 x 8\n", text)
        self.assertIn("\n  output probabilities: float32 n=1 x 10\n", text)
        self.assertEqual({row["backend"] for row in program["placement"]}, {"native"})
        self.assertEqual(report["regions"], [])
        self.assertEqual(program["features_missing_here"], [])
        self.assertEqual(program["imports"], [])
        self.assertEqual([step["op"] for step in program["steps"]][-1], "softmax")
        # A 3x3 convolution from one channel to 16 over 8 x 8, a bias and a ReLU, as in the test of profile; its result
        # is all that lies in the arena.
        first = program["steps"][0]
        self.assertEqual(first["operations"], 1024 * 2 * 9 + (1024 + 16) + 1024)
        self.assertEqual(first["bytes"], 4 * (64 + 16 * 9 + 16 + 1024))
        self.assertEqual(first["arena_bytes"], 4 * 1024)
        # The second reads it and writes 32 channels.
        self.assertEqual(program["steps"][1]["arena_bytes"], 4 * (1024 + 2048))
        self.assertTrue(all(step["arena_bytes"] <= program["arena_bytes"] for step in program["steps"]))
        text = self.call("inspect", "one.so", "--steps", check=True).stdout
        self.assertRegex(text, r"(?m)^step +kind +calls +op +operations +bytes +arena in use$")
        self.assertRegex(text, r"(?m)^0 +kernel +nn_conv2d\S+ +conv_0 +20496 +5\.0 kB +4\.1 kB$")

    def test_inspect_of_a_model_names_its_dimensions(self) -> None:
        report = json.loads(self.call("inspect", DIGITS, "--json", check=True).stdout)
        self.assertEqual(report["inputs"], [{"name": "x", "dtype": "float32", "shape": ["n", 1, 8, 8]}])
        self.assertEqual([one["name"] for one in report["outputs"]], ["probabilities"])
        text = self.call("inspect", DIGITS, check=True).stdout
        self.assertIn("\n  input  x: float32 n x 1 x 8 x 8\n", text)
        self.assertIn("\n  output probabilities: float32 n x 10\n", text)
        self.fails(USER, "'no.onnx'", "inspect", "no.onnx")

    def check_costs(self) -> None:
        """Placement by cost: the plan in the JSON and in the text."""
        by_cost = ("--backends", "ccompiler", "--placement", "cost")
        words = ("explain", "parts.relay", *by_cost)
        explained = json.loads(self.call(*words, "--json", check=True).stdout)
        plan = explained["cost"]
        keys = {"seconds", "lower_bound", "gap", "source", "others", "passed_over", "tried", "scales"}
        self.assertEqual(set(plan), keys)
        self.assertIsNone(plan["scales"])
        self.assertEqual(set(plan["others"]), {"native", "list order", "ccompiler"})
        self.assertLessEqual(plan["seconds"], min(plan["others"].values()))
        self.assertLessEqual(plan["lower_bound"], plan["seconds"])
        self.assertEqual([row["reason"] for row in explained["placement"]], [65, 20, 65])
        costs = [set(row["costs"]) for row in explained["placement"]]
        self.assertEqual(costs[:2], [{"native", "ccompiler"}, {"native"}])
        text = self.call(*words, check=True).stdout
        self.assertRegex(text, r"the plan costs \S+ us, no plan less than \S+ us \(gap 0 us\); costs are estimated")
        self.assertRegex(text, r"as much as possible by ccompiler: \S+ us")
        done = self.call("explain", "parts.relay", "--backends", "ccompiler", "--placement", "luck")
        self.assertEqual(done.returncode, USAGE)
        self.call("compile", "parts.relay", "-o", "cost.so", *by_cost, check=True)
        self.call(*words, "--save-plan", "least.json", check=True)
        saved = json.loads((self.folder / "least.json").read_text(encoding="utf-8"))
        self.assertEqual([row["reason"] for row in saved["ops"]], [65, 20, 65])
        self.call("compile", "parts.relay", "-o", "cost.so", "--plan", "least.json", check=True)
        done = self.call("explain", "parts.relay", "--plan", "least.json", "--placement", "cost")
        self.assertEqual(done.returncode, USER)
        self.assertIn("the plan 'least.json' says where ops go, and so does placement by cost; leave one", done.stderr)
        moved = json.loads(self.call(*words, "--place", "*=native", "--json", check=True).stdout)
        self.assertEqual([row["reason"] for row in moved["placement"]], [67, 67, 67])
        self.assertEqual(moved["cost"]["seconds"], plan["others"]["native"])
        self.check_profile(by_cost)

    def check_profile(self, by_cost: tuple[str, ...]) -> None:
        """Measures the ops, and places by what was measured."""
        done = self.call(
            "profile", "parts.relay", "-o", "costs.json", *by_cost[:2], "--rounds", "2", "--json", check=True
        )
        report = json.loads(done.stdout)
        self.assertEqual((report["output"], report["threads"]), ("costs.json", 1))
        table = json.loads((self.folder / "costs.json").read_text(encoding="utf-8"))
        self.assertEqual((report["costs"], report["plans"]), (5, len(table["plans"])))
        self.assertEqual({row["backend"] for row in table["costs"]}, {"native", "ccompiler"})
        words = ("explain", "parts.relay", "--costs", "costs.json")
        plan = json.loads(self.call(*words, *by_cost, "--json", check=True).stdout)["cost"]
        self.assertEqual(plan["source"], "measured (costs.json)")
        self.check_scales(table, (*words, *by_cost))
        done = self.call(*words)
        self.assertEqual(done.returncode, USER)
        self.assertIn("the costs in 'costs.json' have no effect without placement by cost", done.stderr)
        for row in table["costs"]:
            row["version"] = "0"
        (self.folder / "costs.json").write_text(json.dumps(table), encoding="utf-8")
        done = self.call(*words, *by_cost)
        self.assertEqual(done.returncode, USER)
        self.assertIn("costs.json: the cost 0 of 'ccompiler' was measured with version '0'", done.stderr)
        (self.folder / "costs.json").write_text("{}", encoding="utf-8")
        done = self.call("compile", "parts.relay", "-o", "no.so", "--costs", "costs.json", *by_cost)
        self.assertIn("costs.json: it is not a table of costs", done.stderr)

    def check_scales(self, table: dict, words: tuple[str, ...]) -> None:
        """Whole plans that were timed scale the costs, by factors that the text and the JSON have."""
        table["plans"] = [row for row in table["plans"] if " by cost " not in row["plan"]]  # there are some by chance
        native, alone = sorted(table["plans"], key=lambda row: row["plan"] != "native")
        self.assertEqual((native["plan"], alone["plan"]), ("native", "ccompiler"))
        for row in table["costs"]:
            row["seconds"] = 1e-3
        native["seconds"], alone["seconds"] = 7e-3, 5e-3  # the calls of native code sum to 3 ms
        (self.folder / "costs.json").write_text(json.dumps(table), encoding="utf-8")
        plan = json.loads(self.call(*words, "--json", check=True).stdout)["cost"]
        self.assertEqual(plan["scales"]["native"]["factor"], 2)
        self.assertAlmostEqual(plan["scales"]["native"]["fitted"], 7 / 3)
        self.assertEqual(set(plan["scales"]), {"native", "ccompiler"})
        for scale in plan["scales"]["ccompiler"].values():  # softmax is native; two values enter regions, 1 us each
            self.assertAlmostEqual(scale, (5 - 2 * 1) / 2.002)
        self.assertAlmostEqual(plan["others"]["native"], 7e-3, places=9)
        self.assertAlmostEqual(plan["others"]["ccompiler"], 5e-3, places=9)
        text = self.call(*words, check=True).stdout
        self.assertRegex(
            text, r"\nwhole plans were measured, so costs are multiplied by 2 natively, \S+ on ccompiler\n"
        )
        self.assertRegex(text, r"\nthe whole plan of native asks for a factor of 2.33, which is limited to 2; ")

    def test_backends(self) -> None:
        self.needs_backends("ccompiler")
        (self.folder / "parts.relay").write_text(
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { negative(nn.softmax(add(%x, %x))) }\n',
            encoding="utf-8",
        )
        self.call("compile", "parts.relay", "-o", "parts.so", "--backends", "ccompiler", check=True)
        report = json.loads(self.call("inspect", "parts.so", "--json", check=True).stdout)
        self.assertEqual([region["backend"] for region in report["regions"]], ["ccompiler"] * 2)
        program = report["programs"][0]
        self.assertEqual([row["backend"] for row in program["placement"]], ["ccompiler", "native", "ccompiler"])
        self.assertEqual([step["kind"] for step in program["steps"]], ["region", "kernel", "region"])
        np_file = self.folder / "x23.npy"
        np_file.write_bytes(npy("<f4", (2, 3), bytes(24)))
        done = self.call("run", "parts.so", "--input", f"x={np_file}", "--fallback", "none", "--json", check=True)
        run = json.loads(done.stdout)
        self.assertEqual(run["fallbacks"], [])
        self.assertAlmostEqual(run["outputs"][0]["mean"], -1 / 3, places=5)
        done = self.call("explain", "parts.relay", "--backends", "ccompiler", "--json", check=True)
        explained = json.loads(done.stdout)
        self.assertEqual([row["kind"] for row in explained["placement"]], ["add", "nn.softmax", "negative"])
        self.assertEqual([row["reason"] for row in explained["placement"]], [63, 20, 63])
        self.assertEqual(len(explained["regions"]), 2)
        done = self.call("explain", "parts.relay", "--backends", "ccompiler", check=True)
        self.assertIn("the backend has no C text for this op", done.stdout)
        self.assertNotIn("(reason", done.stdout)
        self.assertIn("2 ops by ccompiler\n1 op by native\n", done.stdout)
        self.assertTrue(done.stdout.endswith("\n2 regions; 2 chosen, no choice for these ops has fewer than 2\n"))
        done = self.call("explain", "parts.relay", "--backends", "ccompiler", "--fail-if-native", "add,nn.soft*")
        self.assertEqual(done.returncode, USER)
        self.assertIn("--fail-if-native 'nn.soft*': the nn.softmax at ", done.stderr)
        done = self.call("explain", "parts.relay", "--fail-if-native", "add,neg*")
        self.assertEqual(done.stderr.count("runs natively"), 2, done.stderr)
        self.check_costs()
        done = self.call("compile", "parts.relay", "-o", "no.so", "--backends", "ccompiler,nobody")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no backend 'nobody'; there are ccompiler", done.stderr)
        self.assertIn("`python -m headrace` also has those of Python's packages", done.stderr)
        self.fails(USER, "'numpy' is one of the Python package; run `python -m headrace` in place of `headrace`",
                   "explain", "parts.relay", "--backends", "numpy")  # fmt: skip
        done = self.call("compile", "parts.relay", "-o", "no.so", "--backends", "ccompiler", "--backend-option", "cc=x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("write NAME.KEY=VALUE", done.stderr)
        self.assertEqual(self.call("run", "parts.so", "--fallback", "maybe").returncode, 2)

    def test_plan(self) -> None:
        self.needs_backends("ccompiler")
        for name, backends in (("a.json", ("--backends", "ccompiler")), ("b.json", ())):
            self.call("explain", DIGITS, *ONE, *backends, "--save-plan", name, check=True)
        report = self.report("plan", "diff", "a.json", "b.json", code=MISMATCH)
        self.assertFalse(report["equal"])

    def test_verify(self) -> None:
        report = self.report("verify", DIGITS, "--shape", "x=4,1,8,8")
        self.assertTrue(report["ok"])
        self.assertLess(report["error"], 1e-6)
        worst = self.report("verify", DIGITS, *ONE, "--limit", "0", code=MISMATCH)
        self.assertFalse(worst["ok"])
        (output,) = worst["outputs"]
        self.assertEqual([output[key] for key in ("error", "limit", "ok")], [worst["error"], 0, False])

    def test_verify_of_a_quantized_program(self) -> None:
        # 5 * 0.1f is 0.5 in float32, which becomes 0, and a little more in float64, which becomes 1.
        (self.folder / "quantized.relay").write_text(
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4), float32]) {\n'
            '  qnn.quantize(multiply(%x, 0.1f), 1f, 0, out_dtype="int8")\n}\n'
        )
        (self.folder / "fives.npy").write_bytes(npy("<f4", (1, 4), struct.pack("<4f", 5, 5, 5, 5)))
        given = ("verify", "quantized.relay", "--input", "x=fives.npy")
        report = self.report(*given)
        self.assertEqual([report[key] for key in ("ok", "reference", "error")], [True, "declared", 0])
        self.assertIn("error against the model's own dtypes", self.call(*given, check=True).stdout)
        self.assertEqual(self.report("verify", DIGITS, *ONE)["reference"], "float64")

    def test_random_indices_are_inside(self) -> None:
        matrix, places = "Tensor[(2, 3), float32]", "Tensor[(2, 3), int64]"
        programs = {
            "gather": (f"%d: {matrix}, %i: {places}", "gather(%d, %i, axis=1)"),
            "scatter": (f"%d: {matrix}, %i: {places}, %u: {matrix}", "scatter_elements(%d, %i, %u, axis=1)"),
            "scatter_nd": (
                f"%d: {matrix}, %i: Tensor[(2, 1), int64], %u: Tensor[(1), float32]",
                "scatter_nd(%d, %i, %u)",
            ),
            "advanced": (f"%d: {matrix}, %i: Tensor[(4), int64], %j: Tensor[(4), int32]", "adv_index((%d, %i, %j))"),
        }
        for name, (inputs, body) in programs.items():
            (self.folder / f"{name}.relay").write_text(f'#[version = "0.0.5"]\ndef @main({inputs}) {{ {body} }}\n')
            self.assertTrue(self.report("verify", f"{name}.relay")["ok"], name)

    def test_verify_of_every_value(self) -> None:
        report = self.report("verify", DIGITS, "--shape", "x=4,1,8,8", "--layers")
        self.assertTrue(report["ok"])
        self.assertIsNone(report["first_wrong"])
        names = [output["name"] for output in report["outputs"]]
        self.assertEqual(names[-1], "probabilities")
        self.assertRegex(names[0], r"\A0 nn\.conv2d \S+\Z")
        self.assertGreater(len(names), 15)
        done = self.call("verify", DIGITS, *ONE, "--layers", "--limit", "1e-9")
        self.assertEqual(done.returncode, MISMATCH)
        self.assertRegex(done.stdout, r"(?m)^The first value that is too far from float64: \d+ nn\.conv2d \S+$")
        (self.folder / "halves.relay").write_text(
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4), float32]) {\n'
            "  %0 = split(%x, indices_or_sections=2, axis=1);\n  (%0.1, add(%0.0, %0.1))\n}\n"
        )
        names = [output["name"] for output in self.report("verify", "halves.relay", "--layers")["outputs"]]
        self.assertEqual(
            [name.split(" ")[:2] for name in names[:3]], [["0", "split.1"], ["1", "split.0"], ["2", "add"]]
        )
        self.assertEqual(names[3:], ["output0", "output1"])
        self.fails(
            USAGE, "--layers: other runtimes do not show", "verify", DIGITS, "--layers", "--against", "onnxruntime"
        )

    def test_verify_takes_shapes_from_files(self) -> None:
        self.assertTrue(self.report("verify", DIGITS, "--input", "x=x.npy")["ok"])
        self.assertTrue(self.report("verify", DIGITS, "--input", "x=several.npy")["ok"])
        self.fails(USER, "9 for dimension 3, which the model fixes to 8", "verify", DIGITS, "--input", "x=wide.npy")
        self.fails(USER, "must be float32 1x1x8x8, the file has float64", "verify", DIGITS, "--input", "x=f64.npy")
        self.fails(USER, "no input 'y'; it has x", "verify", DIGITS, *ONE, "--input", "y=x.npy")
        self.fails(USER, r"dimensions open: x\[0\]", "verify", DIGITS, "--input", "y=x.npy")

    def test_random_indices_fit_their_axis(self) -> None:
        picks = {
            'take(%t, %i, axis=0, mode="fast")': "(40), int64",
            'take(%t, add(%i, 0i64), axis=1, mode="fast")': "(40), int64",
            'take(%t, cast(%i, dtype="int64"), mode="fast")': "(400), int8",
            "gather(%t, %i, axis=0)": "(40, 5), int32",
            "gather_nd(%t, %i)": "(2, 40), int64",
        }
        for pick, indices in picks.items():
            text = f"def @main(%t: Tensor[(3, 5), float32], %i: Tensor[{indices}]) {{ {pick} }}\n"
            (self.folder / "pick.relay").write_text('#[version = "0.0.5"]\n' + text)
            self.assertTrue(self.report("verify", "pick.relay")["ok"])
        self.call("bench", "pick.relay", "--rounds", "1", check=True)


class RunsTest(CliTest):
    def test_text_is_for_people(self) -> None:
        self.assertRegex(self.call("compile", DIGITS, "-o", "t.so", *ONE).stdout, r"^t\.so: \S+ kB, \d+ steps for ")
        self.assertRegex(self.call("inspect", "one.so", "--steps").stdout, r"(?m)^0 +kernel +nn_conv2d")
        self.assertRegex(self.call("bench", "one.so", "--rounds", "2").stdout, r"(?m)^1 +\S+ [um]s")
        self.assertIn("ok: the error is within the limit", self.call("verify", DIGITS, *ONE).stdout)
        self.assertRegex(self.call("run", "one.so", "--input", "x=x.npy").stdout, r"(?m)^probabilities +float32 1x10")

    def test_results_do_not_depend_on_threads_or_passes(self) -> None:
        self.call("compile", DIGITS, "-o", "plain.so", "--opt-level", "0", *ONE, check=True)
        runs = [("one.so", "1"), ("one.so", "2"), ("plain.so", "1")]
        for i, (artifact, threads) in enumerate(runs):
            self.call("run", artifact, "-i", "x=x.npy", "--threads", threads, "--output-dir", f"r{i}", check=True)
        first, second, plain = (self.folder / f"r{i}/probabilities.npy" for i in range(3))
        self.assertEqual(first.read_bytes(), second.read_bytes())
        a, b = (struct.unpack("<10f", file.read_bytes()[-40:]) for file in (first, plain))
        self.assertLess(max(abs(x - y) for x, y in zip(a, b, strict=True)), 1e-6)

    def test_a_target_as_relay_users_write_it(self) -> None:
        target = "llvm -num-cores=2" + (" -mcpu=x86-64-v2" if os.uname().machine == "x86_64" else "")
        forms = [target]
        if "-mcpu" in target:
            forms += [json.dumps({"kind": "llvm", "num-cores": 2, "mcpu": "x86-64-v2"}), "cpu/x86-64-v2"]
        for form in forms:
            self.call("compile", DIGITS, "-o", "target.so", *ONE, "--target", form, check=True)
            found = json.loads(self.call("inspect", "target.so", "--json").stdout)
            self.assertEqual(found["default_threads"], 0 if form.startswith("cpu/") else 2)
            if "-mcpu" in target:
                self.assertEqual(found["programs"][0]["cpu"], "x86-64-v2")

    def test_what_a_target_may_be_is_listed(self) -> None:
        text = self.call("targets", check=True).stdout
        self.assertRegex(text, r"(?m)^kind llvm +type +what\n  -mtriple= +str +the machine")
        self.assertRegex(text, r"(?m)^cpu/x86-64-v3 +llvm -keys=cpu -mcpu=x86-64-v3$")

    def test_an_input_can_be_compiled_in(self) -> None:
        self.call("compile", DIGITS, "-o", "bound.so", "--bind", "x=x.npy", check=True)
        (bound,) = json.loads(self.call("run", "bound.so", "--json").stdout)["outputs"]
        (given,) = json.loads(self.call("run", "one.so", "-i", "x=x.npy", "--json").stdout)["outputs"]
        self.assertAlmostEqual(bound["max"], given["max"], places=6)

    def test_what_the_passes_do_can_be_seen(self) -> None:
        plain = ("compile", DIGITS, "-o", "seen.so", *ONE)
        seen = (*plain, "--dump-ir", "ir/digits", "--time-passes", "--verify-each")
        done = self.call(*seen, check=True)
        self.assertRegex(done.stdout, r"(?m)^pass +ms +runs\nInlineCalls +\d")
        files = sorted(file.name for file in (self.folder / "ir/digits").iterdir())
        self.assertEqual(files[0], "00_program.relay")
        (fused,) = (name for name in files if re.fullmatch(r"\d\d_FuseOps\.diff", name))
        self.assertIn("Primitive=1", (self.folder / "ir/digits" / fused).read_text())
        self.assertEqual((self.folder / "seen.so").read_bytes(), (self.folder / "one.so").read_bytes())
        report = json.loads(self.call(*seen, "--json").stdout)
        self.assertGreater(report["pass_seconds"]["FuseOps"], 0)
        self.fails(USER, "'x.npy' cannot be made a folder", *plain, "--dump-ir", "x.npy")

    def test_relay_text_with_its_weights_aside(self) -> None:
        text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(20), float32]) { add(%x, meta[relay.Constant][0]) }\n'
        header = b'{"relay.Constant.0":{"dtype":"F32","shape":[20],"data_offsets":[0,80]}}'
        (self.folder / "add.relay").write_text(text)
        (self.folder / "add.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + struct.pack("<20f", *range(20))
        )
        given = ("add.relay", "--input-weights", "add.safetensors")
        self.assertIn("ok: ", self.call("verify", *given, check=True).stdout)
        self.fails(USER, "there is no data for constant 0", "verify", "add.relay")
        self.fails(USER, "cannot read the weights file 'no'", "verify", "add.relay", "--input-weights", "no")
        self.fails(USER, "'x.npy' is not a weights file", "verify", "add.relay", "--input-weights", "x.npy")
        self.fails(USER, "is for relay text", "verify", DIGITS, *ONE, "--input-weights", "add.safetensors")

    def test_no_progress_where_there_is_no_terminal(self) -> None:
        self.assertEqual(self.call("compile", DIGITS, "-o", "quiet.so", *ONE).stderr, "")


class ModelNamesTest(CliTest):
    """Models and artifacts whose names do not say what they are: their content does."""

    def test_models(self) -> None:
        for name in ("model", "model.pb", "model.onnx.bin"):
            (self.folder / name).write_bytes(DIGITS.read_bytes())
            self.call("compile", name, "-o", "named.so", *ONE, check=True)
            self.call("verify", name, "--input", "x=x.npy", check=True)
            self.assertIn("x: float32", self.call("inspect", name, check=True).stdout)
            for verb in ("run", "pipeline run"):
                self.fails(USER, f"'{name}' is a model", *verb.split(), name)
        text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n'
        (self.folder / "program.txt").write_text(text, encoding="utf-8")
        self.call("verify", "program.txt", check=True)
        self.fails(USER, "is relay text", "verify", "program.txt", *ONE)
        self.fails(USER, "'program.txt' is not an ONNX model, which onnxruntime needs", "verify", "program.txt",
                   "--against", "onnxruntime")  # fmt: skip

    def test_other_files(self) -> None:
        (self.folder / "named").write_bytes((self.folder / "one.so").read_bytes())
        self.call("bench", "named", "--rounds", "1", check=True)
        self.fails(USER, "'named' is compiled already: --shape is for models", "bench", "named", *ONE)
        self.fails(USER, "'named' is a compiled artifact", "compile", "named", "-o", "never.so")
        self.fails(USER, "'x.npy' is not a model .*begins neither as an ONNX model nor as Relay text", "compile",
                   "x.npy", "-o", "never.so")  # fmt: skip
        self.fails(USER, "'no': No such file", "verify", "no")


class ModelErrorTest(CliTest):
    def test_files(self) -> None:
        out = ("-o", "never.so")
        for verb, more in (("compile", out), ("verify", ()), ("bench", ())):
            self.fails(USER, "'no.onnx': No such file", verb, "no.onnx", *more)
            self.fails(USER, "text.onnx", verb, "text.onnx", *more)
            self.fails(USER, "'empty.onnx' is empty", verb, "empty.onnx", *more)
            self.fails(USER, "is the file truncated", verb, "half.onnx", *more)
            self.fails(USER, "'.' is a folder", verb, ".", *more)
            self.fails(USER, "ends in neither .onnx nor .relay", verb, "x.npy", *more)
            self.fails(USER, "bad.relay:2", verb, "bad.relay", *more)
            self.fails(USER, "the program 'folder.relay' is a directory", verb, "folder.relay", *more)
            self.fails(USER, "main is marked .*SkipOptimization", verb, "skip.relay", *more)
        self.fails(USER, r"the text '\\xe9t\\xe9' is not UTF-8", "compile", "latin.onnx", *out)
        self.fails(USER, "Softmix.*not supported", "compile", "softmix.onnx", *out, *ONE)
        self.assertFalse((self.folder / "never.so").exists())

    def test_files_that_are_something_else(self) -> None:
        for verb, more in (("compile", ("-o", "never.so")), ("verify", ())):
            self.fails(USER, "'one.so' is a compiled artifact; give the model", verb, "one.so", *more)
        self.fails(USER, "digits.onnx' is a model; compile it first", "run", DIGITS)
        self.fails(USER, "digits.onnx' is a model, and has no steps", "inspect", DIGITS, "--steps")
        self.fails(USER, "skip.relay' is a model; compile it first", "inspect", "skip.relay")
        (self.folder / "binary.relay").write_bytes(b"\x7fELF\x00\x01")
        self.fails(USER, "the program 'binary.relay' is not text", "verify", "binary.relay")
        self.fails(USER, "'bad.relay' is not an ONNX model", "verify", "bad.relay", "--against", "onnxruntime")

    def test_a_model_is_not_overwritten(self) -> None:
        own = self.folder / "own.onnx"
        own.write_bytes(DIGITS.read_bytes())
        (self.folder / "link.so").symlink_to("own.onnx")
        for output in ("own.onnx", "link.so"):
            self.fails(USER, "the model is read from it", "compile", "own.onnx", "-o", output, *ONE)
        self.assertEqual(own.read_bytes(), DIGITS.read_bytes())

    def test_what_tensors_cannot_be(self) -> None:
        head = '#[version = "0.0.5"]\ndef @main(%x: Tensor[('
        (self.folder / "lanes.relay").write_text(head + "3), float32x4]) { nn.relu(%x) }\n")
        (self.folder / "rank.relay").write_text(head + ", ".join("1" * 40) + "), float32]) { nn.relu(%x) }\n")
        self.fails(USER, "elements of float32x4, which are vectors", "compile", "lanes.relay", "-o", "never.so")
        self.fails(USER, "40 dimensions, more than 32", "compile", "rank.relay", "-o", "never.so")

    def test_a_full_disk_is_reported(self) -> None:
        calls = (
            ("inspect", "one.so"),
            ("inspect", "one.so", "--steps"),
            ("compile", DIGITS, "-o", "full.so", *ONE),
            ("run", "one.so", "--input", "x=x.npy"),
            ("verify", DIGITS, *ONE),
            ("bench", "one.so", "--rounds", "1"),
            ("targets",),
            ("--help",),
        )
        for call, mode in itertools.product(calls, ((), ("--json",))):
            with self.subTest(call=call, mode=mode), Path("/dev/full").open("w") as full:
                command = [str(self.program), *map(str, call), *mode]
                done = subprocess.run(
                    command, cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
                )
                self.assertEqual(done.returncode, USER, done.stderr)
                self.assertRegex(done.stderr, r"\Aheadrace: the standard output cannot be written to; make room .*\n\Z")

    def test_a_full_standard_error_changes_no_exit_code(self) -> None:
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [str(self.program), "inspect", "no.so"], stderr=full, stdout=subprocess.PIPE, timeout=60
            )
        self.assertEqual((done.returncode, done.stdout), (USER, b""))

    def test_nothing_to_compare(self) -> None:
        self.fails(USER, "nothing is compared", "verify", DIGITS, "--shape", "x=0,1,8,8")

    def test_shapes(self) -> None:
        for verb, more in (("compile", ("-o", "never.so")), ("verify", ()), ("bench", ())):
            self.fails(USER, r"dimensions open: x\[0\] \(n\); .*as in --dim n=1", verb, DIGITS, *more)
            for text in ("x", "x=", "=1", "x=a", "x=1,,8,8", "x=-1,1,8,8", "x=1.5,1,8,8", "x=99999999999999999999"):
                self.fails(USAGE, "--shape: ", verb, DIGITS, *more, "--shape", text)
            self.fails(USER, "'y', but the model's inputs are: x", verb, DIGITS, *more, "--shape", "y=1,1,8,8")
            self.fails(USER, "3 dimensions .* declares 4", verb, DIGITS, *more, "--shape", "x=1,8,8")
            self.fails(USER, "fixes to 8", verb, DIGITS, *more, "--shape", "x=1,1,8,9")
            self.fails(USAGE, "'x' is given twice", verb, DIGITS, *more, *ONE, *ONE)
        self.assertFalse((self.folder / "never.so").exists())

    def test_bound_inputs(self) -> None:
        out = ("-o", "never.so")
        self.fails(USER, "cannot read .*'no.npy': No such file", "compile", DIGITS, *out, "--bind", "x=no.npy")
        self.fails(USER, "float64, but the model declares float32", "compile", DIGITS, *out, "--bind", "x=f64.npy")
        self.fails(USER, "bound and has a shape", "compile", DIGITS, *out, *ONE, "--bind", "x=x.npy")

    def test_options(self) -> None:
        compile_one = ("compile", DIGITS, "-o", "never.so", *ONE)
        for level in ("9", "5", "-1", "high", "3.0"):
            pattern = f"--opt-level: '{level}' is not a whole number from 0 to 4; an example: --opt-level 3"
            self.fails(USAGE, pattern, *compile_one, f"--opt-level={level}")
        self.fails(USAGE, "--jobs: '-1' is not a whole number from 0 to 512", *compile_one, "--jobs", "-1")
        self.fails(USAGE, "--threads: 'many' is not a whole number .*: --threads 2", *compile_one, "--threads", "many")
        self.fails(USAGE, "--seed: 'x' is not a whole number of 0 or more", "verify", DIGITS, *ONE, "--seed", "x")
        self.fails(USER, "unknown processor 'z80'", *compile_one, "--target-cpu", "z80")
        self.fails(USER, "unknown processor 'z80'", *compile_one, "--target", "llvm -mcpu=z80")
        self.fails(USER, "there is no kind of target 'lvm'", *compile_one, "--target", "lvm")
        self.fails(USER, "no option 'cpu'; its options are -mtriple=", *compile_one, "--target", "llvm -cpu=z80")
        for cores in (0, 4000):
            pattern = f"num-cores is {cores}; it goes from 1 to 512"
            self.fails(USER, pattern, *compile_one, "--target", f"llvm -num-cores={cores}")
        self.fails(USER, "the target is empty; write its kind first, as in: llvm -mcpu", *compile_one, "--target", "")
        self.fails(USER, "no tag 'cpu/znver9' .* near are .*cpu/znver4", *compile_one, "--target", "cpu/znver9")
        self.fails(USER, "takes no option 'libs': ", *compile_one, "--target", "llvm -libs=cblas")
        self.fails(USER, "the target's host is", *compile_one, "--target", "llvm -host='llvm -mcpu=nocona'")
        self.fails(USAGE, "not both", *compile_one, "--target", "llvm", "--target-cpu", "z80")
        triple = "llvm -mtriple=riscv64-linux-gnu"
        self.fails(USER, "cannot be made for the triple 'riscv64", *compile_one, "--target", triple)
        self.fails(USER, "cannot make 64-bit code for processor 'pentium'", *compile_one, "--target-cpu", "pentium")
        for features in ("-64bit", "-64bit-mode", "+soft-float", "-sse2"):
            self.fails(USER, "cannot make 64-bit code", *compile_one, f"--target-features={features}")
        self.fails(USER, "unknown processor feature 'frob'", *compile_one, "--target-features=+frob")
        if os.uname().machine == "x86_64":
            self.fails(USER, "'sse4a': loading could not tell .* avx2", *compile_one, "--target-features=+sse4a")
        self.fails(USER, r"write \+name", *compile_one, "--target-features", "avx2")
        self.fails(USER, "no pass 'Frob' .* FoldConstant", *compile_one, "--disable-pass", "Frob")
        self.fails(USER, "FuseOps .* cannot be left out", *compile_one, "--disable-pass", "FuseOps")
        self.fails(USER, "no pass 'Frob'", *compile_one, "--disable-pass", "FoldConstant,Frob")
        self.fails(USER, "no pass 'Frob'", *compile_one, "--disable-pass", "FoldConstant", "--disable-pass", "Frob")
        timed = ("--time-passes", "--disable-pass", "fold_scale_axis,SimplifyExpr", "--disable-pass", "FoldConstant")
        passes = self.call("compile", DIGITS, "-o", "few.so", *ONE, *timed, check=True).stdout
        self.assertIn("\nFuseOps ", passes)
        self.assertNotRegex(passes, "FoldScaleAxis|SimplifyExpr|FoldConstant")

    def test_outputs(self) -> None:
        self.fails(USER, "cannot write 'no/m.so'", "compile", DIGITS, "-o", "no/m.so", *ONE)
        self.fails(USER, r"cannot write '\.': it is a folder", "compile", DIGITS, "-o", ".", *ONE)
        self.fails(USER, "cannot write 'x.npy/m.so'", "compile", DIGITS, "-o", "x.npy/m.so", *ONE)
        self.fails(USER, "cannot write '': the name is empty", "compile", DIGITS, "-o", "", *ONE)
        self.fails(USER, "'/dev/null': it is a device", "compile", DIGITS, "-o", "/dev/null", *ONE)


class RunErrorTest(CliTest):
    def test_artifacts(self) -> None:
        for verb in ("run", "inspect", "bench"):
            self.fails(USER, "there is no file 'no.so'", verb, "no.so")
            self.fails(USER, "end is missing", verb, "half.so")
            self.fails(USER, "checksum does not match", verb, "flipped.so")
            self.fails(USER, "'empty.so' is empty; copy the whole file", verb, "empty.so")
        self.fails(USER, "is a model; compile it first", "run", DIGITS)
        for verb in ("run", "inspect"):
            self.fails(USER, "not a regular file", verb, ".")
        self.fails(USER, "is compiled already: --shape is for models", "bench", "one.so", *ONE)
        options = ("--target-cpu", "nonsense", "--opt-level", "0", "--disable-pass", "nope", "--jobs", "1")
        pattern = "compiled already: --target-cpu, --opt-level, --jobs, --disable-pass are for models"
        self.fails(USER, pattern, "bench", "one.so", *options)
        self.fails(USER, "is an artifact, which onnxruntime cannot", "bench", "one.so", "--against", "onnxruntime")

    def test_inputs(self) -> None:
        def given(*files: str) -> list[str]:
            return ["run", "one.so", *(word for file in files for word in ("--input", file))]

        self.fails(USER, r"'x' \(float32 1x1x8x8\) is missing: .*--input x=FILE.npy", *given())
        self.fails(USER, "no input 'y'; it has x", *given("y=x.npy"))
        self.fails(USER, "cannot read .*'no.npy': No such file", *given("x=no.npy"))
        self.fails(USER, "must be float32 1x1x8x8, the file has float64", *given("x=f64.npy"))
        self.fails(
            USER,
            "must be float32 1x1x8x8, the file has float32 1x1x8x9: .*compile the model for this shape",
            *given("x=wide.npy"),
        )
        self.fails(USER, "100 bytes of data where its shape asks for 256", *given("x=short.npy"))
        self.fails(USER, "dtype is '<U4'", *given("x=words.npy"))
        self.fails(USER, "not begin as a .npy", *given("x=text.npy"))
        self.fails(USER, "input 'x' must be float32 1x1x8x8, the file has bool 2: ", *given("x=bool.npy"))
        self.fails(USER, "'/dev/zero' is not a regular file", *given("x=/dev/zero"))
        self.fails(USER, "'folder.relay' is a directory", *given("x=folder.relay"))
        self.fails(USAGE, "given twice", *given("x=x.npy", "x=x.npy"))
        self.fails(USAGE, "--input: 'x' must have the form NAME=VALUE; an example: --input x=image.npy", *given("x"))

    def test_outputs_and_options(self) -> None:
        run = ("run", "one.so", "--input", "x=x.npy")
        self.fails(USER, "--output-dir: cannot make 'x.npy'", *run, "--output-dir", "x.npy")
        self.fails(USER, "--output-dir: cannot make 'x.npy/out'", *run, "--output-dir", "x.npy/out")
        self.fails(USER, "no program 'frob'; it has default", *run, "--program", "frob")
        self.fails(USAGE, "--threads", *run, "--threads", "-1")
        self.fails(USAGE, "--rounds: '0' is not a whole number from 1 to 100000", "bench", "one.so", "--rounds", "0")
        for threads in ("0", "a", "1,,2", "9999", ""):
            self.fails(USAGE, "--threads: .*; an example: --threads 1,2", "bench", "one.so", "--threads", threads)

    def test_more_memory_than_there_is(self) -> None:
        for batch in (10**8, 10**12, 10**17, 2**63 - 1):
            for verb, more in (("compile", ("-o", "huge.so")), ("bench", ()), ("verify", ())):
                self.fails(
                    USER,
                    "more than any machine( holds)?; .*fix a smaller",
                    verb,
                    DIGITS,
                    *more,
                    "--shape",
                    f"x={batch},1,8,8",
                )

    def test_a_workspace_out_of_proportion(self) -> None:
        plane = "Tensor[(1, 1, 1048576, 1048576), int8]"
        conv = f"def @main(%x: {plane}, %w: Tensor[(1, 1, 3, 3), int8])"
        body = 'nn.conv2d(%x, %w, padding=[1, 1, 1, 1], out_dtype="int8")'
        (self.folder / "wide.relay").write_text(f'#[version = "0.0.5"]\n{conv} {{\n  {body}\n}}\n')
        pattern = r"its kernel would keep \d+ GB in .windows.(.|\n)*at: nn\.conv2d(.|\n)*wide\.relay:3:3"
        self.fails(USER, pattern, "compile", "wide.relay", "-o", "wide.so")


class MissingTest(CliTest):
    @unittest.skipUnless(os.uname().machine == "x86_64", "names features of x86-64")
    def test_cpu_feature(self) -> None:
        self.call("compile", DIGITS, "-o", "new.so", *ONE, "--target-features=+amx-tile,+avx512fp16", check=True)
        (program,) = json.loads(self.call("inspect", "new.so", "--json").stdout)["programs"]
        missing = program["features_missing_here"]
        if not missing:
            self.skipTest("this processor has them all")
        self.assertIn(f"cannot run here: this processor lacks {missing[0]}", self.call("inspect", "new.so").stdout)
        self.fails(MISSING, f"this machine lacks: {missing[0]}", "run", "new.so", "--input", "x=x.npy")

    def test_peer(self) -> None:
        for verb in ("bench", "verify"):
            against = (verb, DIGITS, *ONE, "--against", "onnxruntime")
            self.fails(MISSING, "needs the Python package headrace", *against, HEADRACE_PYTHON="/bin/false")
            self.fails(MISSING, "HEADRACE_PYTHON", *against, HEADRACE_PYTHON="/no/python")
            pattern = "--against: there is no peer 'frob'; there is onnxruntime"
            self.fails(USAGE, pattern, verb, DIGITS, *ONE, "--against", "frob")
            # It is told before the work: the model is not even looked at.
            early = (verb, "no.onnx", "--against", "onnxruntime")
            self.fails(MISSING, "needs the Python package headrace", *early, HEADRACE_PYTHON="/bin/false")

    def test_an_installation_without_the_code_generator(self) -> None:
        with tempfile.TemporaryDirectory() as bare:
            for name in ("libheadrace.so", "libheadrace_rt.so"):
                (Path(bare) / name).symlink_to(self.program.parent.parent / "lib" / name)
            pattern = f"the native code generator is missing: {bare}/libheadrace_llvm.so: .*; install the package"
            self.fails(MISSING, pattern, "compile", DIGITS, "-o", "none.so", *ONE, LD_LIBRARY_PATH=bare)
            self.fails(MISSING, pattern, "verify", DIGITS, *ONE, LD_LIBRARY_PATH=bare)
        self.assertFalse((self.folder / "none.so").exists())


class MismatchTest(CliTest):
    def test_text_and_exit_code(self) -> None:
        done = self.call("verify", DIGITS, *ONE, "--limit", "0")
        self.assertEqual(done.returncode, MISMATCH)
        self.assertIn("MISMATCH: the error is above the limit 0", done.stdout)
        for limit in ("-1", "small", "nan", "inf"):
            pattern = f"--limit: '{limit}' is not a number of 0 or more; an example: --limit 1e-4"
            self.fails(USAGE, pattern, "verify", DIGITS, *ONE, "--limit", limit)


def main(module: ModuleType, name: str) -> int:
    """The command line of a module with such tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="such as RunErrorTest.test_inputs")
    args = parser.parse_args()
    CliTest.program = args.program.resolve()
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(args.tests, module) if args.tests else loader.loadTestsFromModule(module)
    return junit.run_unittests(name, suite, args.junit)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli"))
