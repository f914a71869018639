#!/usr/bin/env python3
"""Mistakes of an importer that keep all shapes, planted in the model that we read: each is caught by a number.

    tests/models/import_mistakes.py --program headrace --write-zoo write_zoo --folder FOLDER [--only NAMES]
        [--rewrite-expected] [--junit FILE]

The peer reads the model as it is, we read one with a changed attribute or weight: a pad moved to one side, another axis
of a softmax, and so on. `headrace verify --against onnxruntime --against-model MODEL` must pass without the change, and
with it must show that we are near the float64 interpreter and far from the peer. The same is asked of outputs of
onnxruntime that are kept in expected/, which need none here. --rewrite-expected writes those anew.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/kit"), str(ROOT / "tests/models")]
import expected  # noqa: E402
import junit  # noqa: E402
import onnx_bytes as onnx  # noqa: E402

OK, MISMATCH = 0, 5


@dataclass(frozen=True)
class Mistake:
    """A model, the same with a mistake, and an input."""

    name: str
    model: bytes
    wrong: bytes
    source: expected.Array


def weights(name: str, *shape: int, seed: int) -> bytes:
    """Random ones, about as large as keep sums of them near 1."""
    scale = 1 / math.sqrt(math.prod(shape[1:]))
    return onnx.tensor(name, shape, expected.random_array(shape, seed, scale).values())


def conv(name: str, wrong_name: str, right: list[int], wrong: list[int], **fixed: list[int]) -> Mistake:
    """A convolution that is flattened, so that planes of as many elements have the same shape."""
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]} | fixed

    def build(value: list[int]) -> bytes:
        nodes = [onnx.node("Conv", ["x", "w"], "c", **attributes | {wrong_name: value})]
        strides = (attributes | {wrong_name: value})["strides"]
        length = 4 * math.prod((8 - 1) // stride + 1 for stride in strides)
        nodes.append(onnx.node("Flatten", ["c"], "y"))
        return onnx.model(nodes, [weights("w", 4, 3, 3, 3, seed=2)], [1, 3, 8, 8], [1, length])

    return Mistake(name, build(right), build(wrong), expected.random_array([1, 3, 8, 8]))


def softmax() -> Mistake:
    """Along rows of a square matrix, read as along columns; of more elements than expected/ keeps."""
    shape = [2, 48, 48]
    models = [onnx.model([onnx.node("Softmax", ["x"], "y", axis=axis)], [], shape, shape) for axis in (2, 1)]
    return Mistake("softmax_axis", *models, expected.random_array(shape))


def square_weight() -> Mistake:
    """A square matrix, read as its transpose."""
    size = 16
    right = expected.random_array([size, size], 2, 0.25).values()
    turned = [right[j * size + i] for i in range(size) for j in range(size)]

    def build(values: list[float]) -> bytes:
        nodes = [onnx.node("MatMul", ["x", "w"], "y")]
        return onnx.model(nodes, [onnx.tensor("w", [size, size], values)], [3, size], [3, size])

    return Mistake("square_weight", build(right), build(turned), expected.random_array([3, size]))


def epsilon() -> Mistake:
    """An epsilon of 1e-5, read as 1e-3, over data of variance 0.01."""

    def build(value: float) -> bytes:
        names = ["scale", "bias"]
        nodes = [onnx.node("InstanceNormalization", ["x", *names], "y", epsilon=value)]
        constants = [onnx.tensor(name, [4], [1.0, 0.5, 2.0, 1.5]) for name in names]
        return onnx.model(nodes, constants, [1, 4, 8, 8], [1, 4, 8, 8])

    return Mistake("epsilon", build(1e-5), build(1e-3), expected.random_array([1, 4, 8, 8], scale=0.1))


def batch_norm(name: str, size: float) -> Mistake:
    """Epsilon again, over channels of variance 1: the mistake is small, 5e-4 of the output, whose elements are about as
    large as `size`."""

    def build(value: float) -> bytes:
        nodes = [onnx.node("BatchNormalization", ["x", "scale", "bias", "mean", "variance"], "y", epsilon=value)]
        constants = {"scale": size, "bias": size / 2, "mean": 0.25, "variance": 1.0}
        tensors = [onnx.tensor(name, [4], [number] * 4) for name, number in constants.items()]
        return onnx.model(nodes, tensors, [1, 4, 4, 4], [1, 4, 4, 4])

    return Mistake(name, build(1e-5), build(1e-3), expected.random_array([1, 4, 4, 4]))


def network(
    name: str, zoo: str, args: argparse.Namespace, change: Callable[[bytes], bytes], shape: tuple[int, ...]
) -> Mistake:
    """A change to all nodes of a generated network."""
    subprocess.run([str(args.write_zoo), str(args.folder), zoo, "--small"], stdout=subprocess.PIPE, check=True)
    model = (args.folder / f"{zoo}.onnx").read_bytes()
    return Mistake(name, model, change(model), expected.random_array(shape))


def all_mistakes(args: argparse.Namespace) -> dict[str, Callable[[], Mistake]]:
    """By name; large ones are made when they are asked for."""

    def move_pads(model: bytes) -> bytes:
        return onnx.replace_attribute(model, "pads", [1, 1, 1, 1], [0, 0, 2, 2])

    picture = (1, 3, 32, 32)
    return {
        "pad": lambda: conv("pad", "pads", [1, 1, 1, 1], [0, 0, 2, 2]),
        "softmax_axis": softmax,
        "square_weight": square_weight,
        "epsilon": epsilon,
        "batch_norm": lambda: batch_norm("batch_norm", 1.0),
        "small_batch_norm": lambda: batch_norm("small_batch_norm", 1e-4),
        "strides": lambda: conv("strides", "strides", [2, 1], [1, 2]),
        "pads_of_squeezenet": lambda: network("pads_of_squeezenet", "squeezenet1_1", args, move_pads, picture),
    }


class Failure(Exception):
    """A mistake that was not caught, or a model without one that was."""


class Checker:
    """The files of one mistake, and what is asked of them."""

    def __init__(self, mistake: Mistake, args: argparse.Namespace) -> None:
        self.name, self.program, self.python = mistake.name, args.program, args.python
        self.folder = args.folder / mistake.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.model, self.wrong, self.source = (self.folder / name for name in ("model.onnx", "wrong.onnx", "x.npy"))
        self.model.write_bytes(mistake.model)
        self.wrong.write_bytes(mistake.wrong)
        expected.write_npy(self.source, mistake.source)

    def run(self, *arguments: object) -> subprocess.CompletedProcess:
        """The program."""
        return subprocess.run(
            [str(self.program), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=600
        )

    def beside_the_peer(self) -> str:
        """Asks verify; gives the numbers."""
        cells = []
        for ours, code in ((self.model, OK), (self.wrong, MISMATCH)):
            named = ("--against", "onnxruntime", "--against-model", self.model)
            done = self.run("verify", ours, "--input", f"x={self.source}", *named, "--json")
            if done.returncode != code:
                raise Failure(f"{ours.name}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
            report = json.loads(done.stdout)
            numbers = {key: math.inf if report[key] is None else report[key] for key in ("difference", "peer_error")}
            if report["error"] is None or report["error"] > report["limit"]:
                raise Failure(f"{ours.name}: ours is not near float64: {report['error']}")
            if (numbers["difference"] > report["difference_limit"]) != (code == MISMATCH):
                raise Failure(f"{ours.name}: the difference {numbers['difference']} is judged wrongly: {report}")
            cells.append(f"{numbers['difference']:.2e}")
        return f"beside onnxruntime {cells[0]} and {cells[1]}"

    def beside_what_is_kept(self) -> str:
        """Runs both and compares with the outputs in expected/; gives the numbers."""
        cells = []
        for ours, is_wrong in ((self.model, False), (self.wrong, True)):
            artifact, outputs = ours.with_suffix(".so"), self.folder / ours.stem
            for call in (
                ("compile", ours, "-o", artifact),
                ("run", artifact, "--input", f"x={self.source}", "--output-dir", outputs, "--json"),
            ):
                done = self.run(*call)
                if done.returncode != OK:
                    raise Failure(f"{ours.name}: {done.stderr}")
            files = [Path(one["file"]) for one in json.loads(done.stdout)["outputs"]]
            off = expected.check(self.name, self.model, {"x": self.source}, files)
            if (off > expected.LIMIT) != is_wrong:
                raise Failure(f"{ours.name}: {off} off what is kept, where the limit is {expected.LIMIT}")
            cells.append(f"{off:.2e}")
        return f"beside what is kept {cells[0]} and {cells[1]}"


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--write-zoo", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="gets the models")
    parser.add_argument("--only", help="names of mistakes, with commas between")
    parser.add_argument("--rewrite-expected", action="store_true", help="needs onnxruntime")
    parser.add_argument("--junit", type=Path)
    args = parser.parse_args()
    args.python = os.environ.setdefault("HEADRACE_PYTHON", str(ROOT / ".venv/bin/python"))
    args.folder.mkdir(parents=True, exist_ok=True)
    return args


def has_peer(python: str) -> bool:
    """Whether that Python has onnxruntime."""
    try:
        command = [python, "-c", "import headrace.peer, onnxruntime"]
        return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0
    except OSError:
        return False


def check(mistake: Mistake, args: argparse.Namespace, is_peer_here: bool) -> list[junit.Case]:
    """Everything that is asked of one mistake."""
    begin = time.monotonic()
    checker = Checker(mistake, args)
    if args.rewrite_expected:
        expected.rewrite(mistake.name, checker.model, {"x": checker.source}, args.python, checker.folder)
    cases = [] if is_peer_here else [junit.Case(f"{mistake.name}_peer", "skipped", "onnxruntime is not installed")]
    ways = {"kept": checker.beside_what_is_kept} | ({"peer": checker.beside_the_peer} if is_peer_here else {})
    for way, ask in ways.items():
        problem = ""
        try:
            said = f"{ask()}, without and with the mistake"
        except (Failure, ValueError) as error:
            said = problem = str(error)
        print(f"{mistake.name}: {said}, {time.monotonic() - begin:.1f} s", flush=True)
        cases.append(junit.Case(f"{mistake.name}_{way}", "failed" if problem else "passed", problem))
    return cases


def main() -> int:
    """Checks all; 1 when a mistake was missed."""
    args = parse_arguments()
    known = all_mistakes(args)
    wanted = args.only.split(",") if args.only else list(known)
    if unknown := [name for name in wanted if name not in known]:
        print(f"no mistake is called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    is_peer_here = has_peer(args.python)
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        # The large ones, which are last, first.
        found = list(pool.map(lambda name: check(known[name](), args, is_peer_here), reversed(wanted)))
    cases = [case for some in reversed(found) for case in some]
    failed = sum(case.outcome == "failed" for case in cases)
    print(f"{len(cases)} cases, {failed} failed{'' if is_peer_here else ', without onnxruntime'}")
    if args.junit:
        junit.write_junit(args.junit, "import_mistakes", cases)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
