#!/usr/bin/env python3
"""Tests artifacts for AArch64: compiled here, run by a cross-built runtime under qemu-user. Standard library only.

    tests/cross/test_aarch64.py --program headrace --write-zoo write_zoo --build FOLDER [--junit FILE] [TEST ...]

FOLDER is the build folder of the preset aarch64-runtime, which is configured and built first. Outputs must be those of
the same model compiled for this machine, within the least limit of `headrace verify`. Every test is skipped where the
cross compiler or qemu-user is missing.
"""

from __future__ import annotations

import argparse
import itertools
import math
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tests/kit"), str(ROOT / "tests/models")]
import build_backends  # noqa: E402
import expected  # noqa: E402
import junit  # noqa: E402

COMPILER, QEMU = "aarch64-linux-gnu-g++-12", "qemu-aarch64"
TRIPLE = "aarch64-linux-gnu"
DIGITS, IMAGES = ROOT / "models/digits.onnx", ROOT / "models/digits_images.npy"
USER, MISSING = 3, 4
# A processor with nothing beyond the base of the architecture, and one of a server.
PROCESSORS = {"generic": "cortex-a57", "neoverse-n1": "neoverse-n1"}

# Programs over float32[3, 37], with float32 results, the only dtype whose values c-host prints.
OPS = (
    *(f"{name}(%x)" for name in ("exp", "sigmoid", "tanh", "erf", "sin", "floor", "ceil", "trunc", "sign")),
    *(f"{name}(multiply(floor(multiply(%x, 8f)), 0.5f))" for name in ("round", "nearbyint")),
    *(f"{name}(add(abs(%x), 0.1f))" for name in ("log", "sqrt", "rsqrt")),
    "power(abs(%x), 1.7f)",
    "floor_divide(multiply(%x, 8f), 3f)",
    "nn.softmax(%x)",
    "sum(%x, axis=[1])",
    "cumsum(%x, axis=1)",
    "sort(%x, axis=1)",
    'cast(argmax(%x, axis=[1]), dtype="float32")',
    'cast(exp(cast(%x, dtype="float16")), dtype="float32")',
    'cast(tanh(cast(%x, dtype="float64")), dtype="float32")',
    *(f'cast(cast(multiply(%x, 9f), dtype="{dtype}"), dtype="float32")' for dtype in ("int8", "int64", "float16")),
    'cast(right_shift(cast(multiply(%x, 100f), dtype="int32"), 3), dtype="float32")',
    'cast(nn.dense(cast(multiply(%x, 20f), dtype="int8"), cast(multiply(%x, 20f), dtype="int8"), units=3,'
    ' out_dtype="int32"), dtype="float32")',
)


def why_skipped() -> str:
    """The reason why the tests cannot run here; empty where they can."""
    absent = [program for program in (COMPILER, QEMU) if shutil.which(program) is None]
    if absent:
        return f"there is no {' and no '.join(absent)} (./dev setup --peers installs it)"
    return "" if platform.machine() == "x86_64" else "this machine is not x86_64, which the tests compile on"


def difference(found: Sequence[float], wanted: Sequence[float]) -> float:
    """The largest difference, relative to the largest element that is wanted; infinite for a number that is none."""
    if len(found) != len(wanted) or not all(map(math.isfinite, found)):
        return math.inf
    return max(abs(a - b) for a, b in zip(found, wanted, strict=True)) / max(map(abs, wanted))


def target(cpu: str, *features: str) -> tuple[str, str]:
    """The option for a processor of AArch64."""
    more = f" -mattr={','.join(features)}" if features else ""
    return "--target", f"llvm -mtriple={TRIPLE} -mcpu={cpu}{more}"


@unittest.skipIf(why_skipped(), why_skipped())
class CrossTest(unittest.TestCase):
    """A folder with models and inputs, and the cross-built programs."""

    program: ClassVar[Path]
    write_zoo: ClassVar[Path]
    build: ClassVar[Path]
    folder: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        images = expected.read_npy(IMAGES)
        expected.write_npy(cls.folder / "x.npy", expected.Array("<f4", (1, 1, 8, 8), images.data[:256]))

    def call(self, *command: object) -> subprocess.CompletedProcess:
        """Runs a command in the folder."""
        words = [str(word) for word in command]
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=600, check=False)

    def passes(self, *command: object) -> str:
        """The standard output of a command that must succeed."""
        done = self.call(*command)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        return done.stdout

    def fails(self, code: int, pattern: str, *command: object) -> None:
        """The command ends with that exit code and a message that matches."""
        done = self.call(*command)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertRegex(done.stderr, pattern)

    def emulated(self, program: str, *arguments: object, cpu: str = "cortex-a57") -> tuple[object, ...]:
        """The command that runs a cross-built program on a processor that qemu emulates."""
        return QEMU, "-cpu", cpu, "-L", "/usr/aarch64-linux-gnu", self.build / "bin" / program, *arguments

    def values(self, *arguments: object, cpu: str = "cortex-a57") -> dict[str, list[float]]:
        """All values of each output that the cross-built c-host prints, by the output's name."""
        lines = self.passes(*self.emulated("c-host", "--all", *arguments, cpu=cpu)).splitlines()
        pairs = [(a, b) for a, b in itertools.pairwise(lines) if a.startswith("output ")]
        return {head.split()[1].rstrip(":"): [float(word) for word in text.split()] for head, text in pairs}

    def values_here(self, model: Path, given: str, *options: str) -> dict[str, list[float]]:
        """All values of each output of the model, compiled for this machine and run by it, by the output's name."""
        self.passes(self.program, "compile", model, "-o", "here.so", *options)
        self.passes(self.program, "run", "here.so", "--input", given, "--output-dir", "out")
        values = {file.stem: expected.read_npy(file).values() for file in (self.folder / "out").glob("*.npy")}
        shutil.rmtree(self.folder / "out")
        return values

    def agree(self, found: dict[str, list[float]], wanted: dict[str, list[float]]) -> None:
        """The outputs are the same within the limit."""
        self.assertEqual(found.keys(), wanted.keys())
        for name, values in wanted.items():
            self.assertLessEqual(difference(found[name], values), expected.LIMIT, name)


class ModelsTest(CrossTest):
    def test_digits(self) -> None:
        shape = ("--shape", "x=1,1,8,8")
        wanted = self.values_here(DIGITS, "x=x.npy", *shape)
        self.assertEqual([len(values) for values in wanted.values()], [10])
        for cpu, emulated in PROCESSORS.items():
            for level in ("0", "3"):
                with self.subTest(cpu=cpu, level=level):
                    self.passes(self.program, "compile", DIGITS, "-o", "arm.so", *shape, *target(cpu), "-O", level)
                    self.agree(self.values("arm.so", "x.npy", cpu=emulated), wanted)

    def test_mobilenet(self) -> None:
        model = self.folder / "mobilenet_v2.onnx"
        self.passes(self.write_zoo, self.folder, "mobilenet_v2", "--small")
        self.passes(self.program, "compile", model, "-o", "arm.so", *target("neoverse-n1"))
        first = self.passes(*self.emulated("c-host", "arm.so", cpu="neoverse-n1")).splitlines()[0]
        name, shape = first.split()[1].rstrip(":"), first.rsplit("shape ", 1)[1].split()
        expected.write_npy(self.folder / "image.npy", expected.random_array([int(word) for word in shape]))
        wanted = self.values_here(model, f"{name}=image.npy")
        self.assertEqual([len(values) for values in wanted.values()], [1000])
        self.agree(self.values("arm.so", "image.npy", cpu="neoverse-n1"), wanted)

    def test_ops(self) -> None:
        """Functions of numbers, conversions, reductions and integers, whose code differs by machine."""
        text = ",\n  ".join(OPS)
        program = self.folder / "ops.relay"
        program.write_text(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(3, 37), float32]) {{\n  ({text})\n}}\n')
        expected.write_npy(self.folder / "numbers.npy", expected.random_array((3, 37), seed=5))
        wanted = self.values_here(program, "x=numbers.npy")
        self.assertEqual(len(wanted), len(OPS))
        for cpu, emulated in PROCESSORS.items():
            with self.subTest(cpu=cpu):
                self.passes(self.program, "compile", program, "-o", "ops.so", *target(cpu))
                self.agree(self.values("ops.so", "numbers.npy", cpu=emulated), wanted)

    def test_a_client_without_the_runtime(self) -> None:
        """c-client has nothing but dlopen; its input is 0, 1, 2 ... modulo 11, minus 4."""
        shape = ("--shape", "x=1,1,8,8")
        data = struct.pack("<64f", *(i % 11 - 4 for i in range(64)))
        expected.write_npy(self.folder / "ramp.npy", expected.Array("<f4", (1, 1, 8, 8), data))
        (wanted,) = self.values_here(DIGITS, "x=ramp.npy", *shape).values()
        self.passes(self.program, "compile", DIGITS, "-o", "arm.so", *shape, *target("generic"))
        printed = self.passes(*self.emulated("c-client", "arm.so", "--in", "1,1,8,8", "--out", "1,10"))
        # Six digits are printed, so the limit is that of a printed number.
        self.assertLessEqual(difference([float(word) for word in printed.split()[-10:]], wanted), 1e-5)


class RefusalTest(CrossTest):
    def setUp(self) -> None:
        self.passes(self.program, "compile", DIGITS, "-o", "arm.so", "--shape", "x=1,1,8,8", *target("generic"))
        self.passes(self.program, "compile", DIGITS, "-o", "x86.so", "--shape", "x=1,1,8,8", "--target-cpu", "x86-64")

    def test_files_of_the_other_machine(self) -> None:
        text = "'{}' holds code for {}, and this machine is {}; run it on a machine of that kind, or compile the model"
        self.fails(MISSING, text.format("arm.so", "aarch64", "x86_64"), self.program, "run", "arm.so")
        self.fails(MISSING, text.format("x86.so", "x86_64", "aarch64"), *self.emulated("c-host", "x86.so"))
        verify = (self.program, "verify", DIGITS, "--shape", "x=1,1,8,8", *target("generic"))
        self.fails(MISSING, text.format(".*digits.onnx", "aarch64", "x86_64"), *verify)

    def test_other_compilers_need_one_for_the_machine(self) -> None:
        if why := build_backends.left_out(str(self.program)).get("ccompiler"):
            self.skipTest(why)
        command = (self.program, "compile", DIGITS, "-o", "c.so", "--shape", "x=1,1,8,8", *target("generic"))
        backend = ("--backends", "ccompiler")
        text = (
            "cannot link 'the regions of ccompiler': it holds code for another machine than aarch64-unknown-linux-gnu"
        )
        self.fails(USER, text, *command, *backend)
        self.passes(*command, *backend, "--backend-option", f"ccompiler.cc={COMPILER.replace('g++', 'gcc')}")
        self.agree(self.values("c.so", "x.npy"), self.values_here(DIGITS, "x=x.npy", "--shape", "x=1,1,8,8"))

    def test_what_a_file_needs_is_printed(self) -> None:
        command = (self.program, "compile", DIGITS, "-o", "n1.so", "--shape", "x=1,1,8,8")
        printed = self.passes(*command, *target("generic"))
        self.assertIn("\nit needs any aarch64 processor, which this machine does not have\n", printed)
        self.passes(*command, *target("generic", "+dotprod", "+lse"))
        printed = self.passes(self.program, "inspect", "n1.so")
        self.assertIn("\n  needs an aarch64 processor with dotprod, lse\n", printed)
        self.assertIn("\n  cannot run here: its code is for aarch64, and this machine is x86_64\n", printed)

    def test_features_that_the_processor_lacks(self) -> None:
        command = (self.program, "compile", DIGITS, "-o", "n1.so", "--shape", "x=1,1,8,8")
        self.passes(*command, *target("generic", "+dotprod", "+lse"))
        text = "needs CPU features that this machine lacks: dotprod, lse; compile the model for this machine"
        self.fails(MISSING, text, *self.emulated("c-host", "n1.so", cpu="cortex-a57"))
        wanted = self.values_here(DIGITS, "x=x.npy", "--shape", "x=1,1,8,8")
        self.agree(self.values("n1.so", "x.npy", cpu="neoverse-n1"), wanted)

    def test_options_that_cannot_be(self) -> None:
        command = (self.program, "compile", DIGITS, "-o", "never.so", "--shape", "x=1,1,8,8")
        text = "feature 'sve': loading could not tell a machine that lacks it; .* among .*dotprod"
        self.fails(USER, text, *command, *target("generic", "+sve"))
        self.fails(USER, "unknown processor feature 'avx2'", *command, *target("generic", "+avx2"))
        self.fails(USER, "unknown processor 'znver4' for aarch64", *command, *target("znver4"))
        for triple in ("aarch64-apple-darwin", "aarch64_be-linux-gnu", "arm-linux-gnueabihf", "toaster"):
            text = "cannot make code for the triple '.*'; known are x86_64, aarch64 and riscv64 on Linux"
            self.fails(USER, text, *command, "--target", f"llvm -mtriple={triple}")
        text = "an artifact cannot be made for the triple 'riscv64.*': this Headrace makes them for x86_64 and aarch64"
        self.fails(USER, text, *command, "--target", "llvm -mtriple=riscv64-linux-gnu")
        self.assertFalse((self.folder / "never.so").exists())


def build_runtime(folder: Path) -> None:
    """Configures and builds the preset in a folder; exits where that fails."""
    build = ("cmake", "--build", folder, "--target", "c-host", "c-client")
    for command in (("cmake", "--preset", "aarch64-runtime", "-B", folder), build):
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-6000:]}")


def main() -> int:
    """Builds the runtime, runs the tests, and gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--program", "--write-zoo", "--build"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("tests", nargs="*")
    args = parser.parse_args()
    CrossTest.program, CrossTest.write_zoo = args.program.resolve(), args.write_zoo.resolve()
    CrossTest.build = args.build.resolve()
    if not why_skipped():
        build_runtime(CrossTest.build)
    loader = unittest.defaultTestLoader
    module = sys.modules["__main__"]
    suite = loader.loadTestsFromNames(args.tests, module) if args.tests else loader.loadTestsFromModule(module)
    return junit.run_unittests("cross", suite, args.junit)


if __name__ == "__main__":
    sys.exit(main())
