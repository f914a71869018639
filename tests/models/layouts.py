#!/usr/bin/env python3
"""Layouts that AssignLayout gives networks for pictures at their own size, as `headrace inspect` shows the steps.

    tests/models/layouts.py --program headrace --write-zoo write_zoo --folder FOLDER

At least 95 % of the operations of convolutions are in blocks of channels, and few steps change a layout. Each network
is compiled for this processor, for Zen 4 and for a Xeon with AMX; nothing is run. The compiler's peak of memory for
ResNet-50 is at most 1.7 times its weights.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

MOST_CHANGES = {"resnet50": 2, "vgg16": 2, "inception_v3": 4, "squeezenet1_1": 4}
LEAST_SHARE = 0.95
MOST_PEAK = {"resnet50": 1.7}  # times the weights; small networks need as much as the compiler's own code and data
TARGETS = ("native", "znver4", "sapphirerapids")
MAX_NAME = 72  # a kernel's name leaves out the ops behind so many letters (kMaxWords in plan/group_names.cc)


@dataclass
class Layouts:
    """The layouts of a program: operations of convolutions, those of them in blocks, and changes of layout."""

    operations: int = 0
    blocked: int = 0
    changes: int = 0


class Steps:
    """The steps of a program and the tensors that they compute for each other, by a report of `headrace inspect`."""

    def __init__(self, program: dict, block: int) -> None:
        self.program = program
        self.block = block
        # By the index of a node: the inputs that are not constants.
        self.computed = {(edge["to"], edge["input"]) for edge in program["graph"]["edges"]}

    def is_blocked(self, tensor: dict) -> bool:
        """Tell whether a tensor of a network for pictures has its channels in blocks."""
        return len(tensor["shape"]) == 5 and tensor["shape"][-1] == self.block

    def kernel_of(self, node: dict) -> list[int]:
        """Return the shape of a convolution's kernel; 6 axes: from blocks to blocks, 5: from NCHW to blocks."""
        return node["inputs"][1]["shape"]

    def changes_by_name(self, node: dict) -> int:
        """Return the calls of layout_transform that a step's name lists."""
        return node["op"].count("layout_transform")

    def changes_by_shape(self, at: int, node: dict) -> int:
        """Return 1 for a step that reads one layout and writes another, unless its convolution does that itself."""
        images = [t for i, t in enumerate(node["inputs"]) if (at, i) in self.computed and len(t["shape"]) in (4, 5)]
        if "nn_conv2d" in node["op"] and len(self.kernel_of(node)) == 5 and not self.is_blocked(images[0]):
            images = images[1:]
        written = [t for t in node["outputs"] if len(t["shape"]) in (4, 5)]
        return int(len({self.is_blocked(tensor) for tensor in (*images, *written)}) > 1)

    def layouts(self) -> Layouts:
        """Count; the names of steps and the shapes of their tensors must say the same."""
        found, at = Layouts(), -1
        steps = iter(self.program["steps"])
        for at, node in enumerate(self.program["graph"]["nodes"]):
            if node["kind"] in ("input", "output"):
                continue
            step = next(steps)
            by_name, by_shape = self.changes_by_name(node), self.changes_by_shape(at, node)
            if by_name < by_shape and len(node["op"]) < MAX_NAME:
                raise AssertionError(f"{node['op']} changes a layout by a name that does not say so")
            found.changes += max(by_name, by_shape)
            if "nn_conv2d" in node["op"]:
                found.operations += step["operations"]
                found.blocked += step["operations"] if len(self.kernel_of(node)) > 4 else 0
        return found


class LayoutsOfNetworks(unittest.TestCase):
    """Run the programs of one build."""

    options: ClassVar[argparse.Namespace]

    def run_program(self, *command: str | Path) -> str:
        """Run a program, and return what it prints."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def inspect(self, model: Path, target: str) -> dict:
        """Compile a model for a processor, and return the report of its program."""
        artifact = model.with_suffix(".so")
        chosen = [] if target == "native" else ["--target-cpu", target]
        self.compile(model, chosen, artifact)
        (program,) = json.loads(self.run_program(self.options.program, "inspect", artifact, "--json"))["programs"]
        artifact.unlink()
        return program

    def compile(self, model: Path, chosen: list[str], artifact: Path) -> None:
        """Compile a model, and compare the compiler's peak of memory with the weights."""
        command = [self.options.program, "compile", model, *chosen, "-o", artifact, "--quiet", "--json"]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE) as process:
            report = json.load(process.stdout)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        peak = usage.ru_maxrss * 1024 / report["weight_bytes"]
        print(f"{model.stem}: the compiler's peak is {peak:.2f} times the weights", file=sys.stderr)
        self.assertLessEqual(peak, MOST_PEAK.get(model.stem, float("inf")))

    def test_blocks(self) -> None:
        """Each network, for each processor."""
        self.options.folder.mkdir(parents=True, exist_ok=True)
        for name, target in itertools.product(MOST_CHANGES, TARGETS):
            model = self.options.folder / f"{name}.onnx"
            if target == TARGETS[0]:
                self.run_program(self.options.write_zoo, self.options.folder, name)
            with self.subTest(network=name, target=target):
                self.check(name, self.inspect(model, target))
            if target == TARGETS[-1]:
                model.unlink()  # some have hundreds of megabytes

    def check(self, name: str, program: dict) -> None:
        """Compare the layouts of a program with the limits of its network."""
        features = program["features"]
        if "avx2" not in features:
            self.skipTest("vectors of this processor are too short for blocks")
        found = Steps(program, 16 if "avx512f" in features else 8).layouts()
        share = found.blocked / found.operations
        print(f"{name} for {program['cpu']}: {100 * share:.1f} % in blocks, {found.changes} changes", file=sys.stderr)
        self.assertGreaterEqual(share, LEAST_SHARE)
        self.assertLessEqual(found.changes, MOST_CHANGES[name])


def main() -> None:
    """Read the options and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--write-zoo", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    LayoutsOfNetworks.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
