#!/usr/bin/env python3
"""Checks backends on headrace/backend.hpp: the example, the steps of a region, and what becomes of exceptions.

test_cpp_backend.py --program build/release/bin/headrace --plugins build/release/plugins
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = argparse.Namespace()
OK, BAD_INPUT = 0, 3


def plugin(name: str) -> Path:
    return Path(OPTIONS.plugins) / f"{name}.so"


def headrace(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [OPTIONS.program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


class CppBackend(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headrace_cpp_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def model(self, body: str, parameters: str = "%x: Tensor[(2, 3), float32]") -> Path:
        path = self.folder / "model.relay"
        path.write_text(f'#[version = "0.0.5"]\ndef @main({parameters}) {{\n{body}\n}}\n')
        return path

    def compiled(self, body: str, library: str = "steps") -> Path:
        """Returns the artifact of a program of one input."""
        file = self.folder / "model.so"
        name = library.rstrip("0")
        done = headrace("compile", self.model(body), "-o", file, "--plugin", plugin(library), "--backends", name)
        self.assertEqual(done.returncode, OK, done.stderr)
        return file

    def run_of(self, file: Path, library: str = "steps", fallback: str = "none") -> subprocess.CompletedProcess[str]:
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + "\n"
        image = self.folder / "x.npy"
        image.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(24))
        return headrace("run", file, "--input", f"x={image}", "--plugin", plugin(library), "--fallback", fallback,
                        "--threads", 2, "--output-dir", self.folder)  # fmt: skip

    def reasons_of(self, body: str) -> str:
        done = headrace("explain", self.model(body), "--plugin", plugin("steps"), "--backends", "steps", "--json")
        self.assertEqual(done.returncode, OK, done.stderr)
        return done.stdout

    def test_the_example_keeps_its_promises(self) -> None:
        done = headrace("backend", "check", plugin("convs_cpp"), "--json")
        self.assertEqual(done.returncode, OK, done.stdout[-2000:] + done.stderr)
        claimed = {case["case"].split("/")[0] for case in json.loads(done.stdout)["cases"] if case["claimed"]}
        self.assertEqual(claimed, {"convs_cpp.conv", "convs_cpp.conv_relu"})
        done = headrace("verify", ROOT / "models/digits.onnx", "--shape", "x=1,1,8,8", "--plugin", plugin("convs_cpp"),
                        "--backends", "convs_cpp", "--threads", 2)  # fmt: skip
        self.assertEqual(done.returncode, OK, done.stdout + done.stderr)
        self.assertIn("9 ops by convs_cpp", headrace(
            "explain", ROOT / "models/digits.onnx", "--shape", "x=1,1,8,8", "--plugin", plugin("convs_cpp"),
            "--backends", "convs_cpp").stdout)  # fmt: skip

    def test_the_example_is_short(self) -> None:
        lines = (ROOT / "examples/byoc-plugin-cpp/plugin.cc").read_text().splitlines()
        code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
        self.assertLessEqual(len(code), 60)

    def test_the_examples_take_each_form_of_a_bias(self) -> None:
        filters = ", ".join(f"{i}f" for i in range(1, 19))
        conv = f"nn.conv2d(%x, const(Tensor[(2, 1, 3, 3), float32], [{filters}]), kernel_size=[3, 3], channels=2)"
        image, bias = "%x: Tensor[(1, 1, 3, 4), float32]", "const(Tensor[(2, 1, 1), float32], [-9f, 5f])"
        row = "const(Tensor[(2), float32], [-9f, 5f])"  # as wide as the result, which has two channels
        forms = {f"add({conv}, {bias})": 2, f"add({bias}, {conv})": 2, f"nn.bias_add({conv}, {row})": 2,
                 f"nn.relu(add({bias}, {conv}))": 3, f"add({conv}, {row})": 0, f"add({row}, {conv})": 0}  # fmt: skip
        for name in ("convs", "convs_cpp"):
            for form, taken in forms.items():
                with self.subTest(name=name, form=form[:20]):
                    done = headrace("verify", self.model(form, image), "--plugin", plugin(name), "--backends", name)
                    self.assertEqual(done.returncode, OK, done.stdout + done.stderr)
                    self.assertIn(f", {taken} by {name}\n", done.stdout)

    def test_steps_keep_their_promises(self) -> None:
        structures = (
            "value_used_twice",
            "two_constants",
            "constant_used_twice",
            "three_inputs",
            "diamond",
            "two_results",
        )
        cases = ("subtract/*", "concatenate/*", "split/*", *(f"structure/{name}" for name in structures))
        options = [word for case in cases for word in ("--case", case)]
        done = headrace("backend", "check", plugin("steps"), "--json", *options)
        self.assertEqual(done.returncode, OK, done.stdout[-2000:] + done.stderr)
        claimed = {case["case"] for case in json.loads(done.stdout)["cases"] if case["claimed"]}
        self.assertLessEqual(
            {"structure/two_results", "structure/two_constants", "concatenate/twice_one", "concatenate/constant",
             "split/equal", "split/at_places"}, claimed)  # fmt: skip

    def test_tuples_between_steps(self) -> None:
        body = ("let %s = split(subtract(%x, %x), indices_or_sections=3, axis=1);\n"
                "let %t = (%s.2, %s.0);\n(concatenate((%t.0, %t.1, %x), axis=1), %x, %s.1, %s.1)")  # fmt: skip
        done = headrace("verify", self.model(body), "--plugin", plugin("steps"), "--backends", "steps")
        self.assertEqual(done.returncode, OK, done.stdout + done.stderr)

    def test_exceptions_of_verdicts_are_reasons(self) -> None:
        self.assertIn("steps: sigmoid has no attribute 'flavour'", self.reasons_of("sigmoid(%x)"))
        self.assertIn("steps: an exception of an unknown type", self.reasons_of("erf(%x)"))
        self.assertIn("steps: it does not compute this op", self.reasons_of("abs(%x)"))

    def test_a_composite_by_hand_is_what_its_name_says(self) -> None:
        image, filters = "Tensor[(1, 1, 3, 3), float32]", ", ".join(f"{i}f" for i in range(1, 10))
        conv = f"nn.conv2d(%a, const({image}, [{filters}]), kernel_size=[3, 3], channels=1)"
        biased = f"add({conv}, const(Tensor[(1, 1, 1), float32], [-50f]))"
        cases = ((biased, OK, "ok: "), (f"tanh({biased})", BAD_INPUT, "computes only what its patterns match"))
        for body, code, said in cases:
            model = self.folder / "by_hand.relay"
            model.write_text(
                f'#[version = "0.0.5"]\ndef @f(%x: {image}, Compiler="convs_cpp") {{\n'
                f'  fn (%a: {image}, Composite="convs_cpp.conv") {{ {body} }}(%x)\n}}\n'
                f"def @main(%x: {image}) {{ @f(%x) }}\n"
            )
            done = headrace("verify", model, "--plugin", plugin("convs_cpp"))
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(said, done.stdout + done.stderr)

    def test_a_refusal_leaves_the_region_to_native_code(self) -> None:
        file = self.compiled("tanh(%x)")
        self.assertIn("it has no room for tanh", headrace("inspect", file, "--json").stdout)

    def test_other_exceptions_end_the_compile(self) -> None:
        def error_of(body: str, *options: str) -> str:
            done = headrace("compile", self.model(body), "-o", self.folder / "model.so", "--plugin", plugin("steps"),
                            "--backends", "steps", *options)  # fmt: skip
            self.assertEqual(done.returncode, BAD_INPUT, done.stdout + done.stderr)
            return done.stderr

        self.assertIn("it needs the option 'level'", error_of("sqrt(%x)"))
        for text in ("high", "3.5", "inf"):
            told = error_of("sqrt(%x)", "--backend-option", f"steps.level={text}")
            self.assertIn(f"'level' is not an integer: {text}", told)
        self.assertIn(
            "there is no option 'speed'; there is mode, level",
            error_of("sqrt(%x)", "--backend-option", "steps.speed=3"),
        )

    def test_texts_of_the_command_line_are_read_as_numbers(self) -> None:
        for text in ("3", "-3", "true"):
            options = ("--backends", "steps", "--backend-option", f"steps.level={text}")
            file = self.folder / "model.so"
            done = headrace("compile", self.model("sqrt(%x)"), "-o", file, "--plugin", plugin("steps"), *options)
            self.assertEqual(done.returncode, OK, done.stdout + done.stderr)

    def test_exceptions_of_runs_are_messages(self) -> None:
        done = self.run_of(self.compiled("exp(%x)"))
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertIn("a tensor is read as another type than it has", done.stderr)
        done = self.run_of(self.compiled("negative(%x)"))
        self.assertIn("the first part is too hot", done.stderr)
        done = self.run_of(self.compiled("ceil(%x)"))
        self.assertIn("the backend does not load all that it wrote when it compiled a step", done.stderr)

    def test_another_version_is_refused(self) -> None:
        file = self.compiled("subtract(%x, %x)")
        self.assertEqual(self.run_of(file).returncode, OK)
        done = self.run_of(file, "steps2")
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertIn("compiled by version 1 of the backend, and this is version 2; compile", done.stderr)
        done = self.run_of(file, "steps2", fallback="native")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("ran natively, not by steps", done.stdout + done.stderr)

    def test_a_version_that_is_accepted_runs(self) -> None:
        done = self.run_of(self.compiled("subtract(%x, %x)"), "steps3")
        self.assertEqual(done.returncode, OK, done.stderr)

    def test_a_backend_says_why_it_refuses_a_version(self) -> None:
        done = self.run_of(self.compiled("subtract(%x, %x)", "steps0"), "steps3")
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        said = "and this is version 3, which says: version 0 had no rows; compile the model again"
        self.assertIn(said, done.stderr)

    def test_backends_that_do_not_say_which_versions_they_accept(self) -> None:
        """Those of the interface of today accept none; earlier ones could not say so, and get all blobs."""
        file = self.compiled("add(%x, %x)", "chip")
        self.assertEqual(self.run_of(file, "chip").returncode, OK)
        done = self.run_of(file, "chip9")
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertIn("compiled by version 1 of the backend, and this is version 9; compile", done.stderr)
        self.assertEqual(self.run_of(file, "chip9_1_3").returncode, OK)

    def test_lists_of_lists_are_read(self) -> None:
        body = "nn.pad(%x, 5f, pad_width=[[1, 0], [0, 2]])"
        done = headrace("verify", self.model(body), "--plugin", plugin("pads"), "--backends", "pads")
        self.assertEqual(done.returncode, OK, done.stdout + done.stderr)
        file = self.compiled(body, "pads")
        self.assertEqual(self.run_of(file, "pads").returncode, OK)
        values = struct.unpack("<15f", (self.folder / "output0.npy").read_bytes()[-60:])
        self.assertEqual(values, (5,) * 5 + (0, 0, 0, 5, 5) * 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--plugins", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
