#!/usr/bin/env python3
"""Networks partitioned over backends: each list of backends gives the results of the float64 interpreter.

    tests/models/verify_backends.py --program headrace --write-zoo write_zoo --folder FOLDER [--full] [--only NAMES]
        [--table FILE]

Prints for each network and list the ops of each backend, the regions and the error. The networks are those of
verify_models.py: those of the generator, digits, and those of models/fetch.py where PyPI could be reached. --full takes
all at their own resolution, and the detector on a real page, too; otherwise some at a low one. --only takes those
named, with commas between. Integer outputs, as the boxes that a detector selects, must be equal. --table writes the
same as a page: without --full, of all networks at a low resolution.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import text_inputs
import verify_models

SMALL = ("digits", "mlp", "squeezenet1_1", "mobilenet_v2", "resnet18", "ssd_mobilenet", "bert_base", "classifier")
FULL = (
    *("digits", "mlp", "squeezenet1_1", "mobilenet_v2", "resnet18", "ssd_mobilenet", "alexnet", "densenet121"),
    *("shufflenet_v2", "resnet50", "vgg16", "inception_v3"),
    *("ssd_resnet50", "ssd_vgg16", "bert_base", "vit_base16", "gpt2", "classifier", "detector"),
)
LISTS = ("onednn", "onednn,ccompiler", "ccompiler,onednn", "examplejson")
# The least share of ops that a list must take: a backend that takes nothing would pass without it. examplejson adds
# tensors of equal sizes: it takes something of the networks that have such additions.
LEAST_TAKEN = {"onednn": 0.85, "onednn,ccompiler": 0.85, "ccompiler,onednn": 0.85, "examplejson": 0.0}
WITH_ADDITIONS = ("mobilenet_v2", "resnet18", "resnet50", "ssd_resnet50", "classifier", "detector")
INTRODUCTION = """# Models on backends
Networks with parts of them on backends: `digits`, `classifier` and `detector` are trained, the others have seeded
random weights, made by the generator of the tests. Each row is one model and one list of backends, in the order of
their priority ([use a backend](use-a-backend.md)): the ops that each backend takes, the regions, and the error of the
compiled model. The error is the largest difference from the float64 interpreter, relative to the largest element of the
output; of a network for boxes, the worse of boxes and scores. The boxes that it selects are indices and must be equal.
"""


def run_json(options: argparse.Namespace, *words: str) -> tuple[int, dict, str]:
    command = [options.program, *words, "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr.strip()


@dataclass(frozen=True)
class Row:
    """One network with one list of backends; an empty problem is a pass."""

    network: str
    backends: str
    regions: int = 0
    ops: str = ""
    errors: tuple[tuple[str, float], ...] = ()
    problem: str = ""

    def worst(self) -> float:
        return max((error for _, error in self.errors), default=float("nan"))


def error_of(output: dict) -> float:
    """The error of an output; null is infinite."""
    return float("inf") if output["error"] is None else output["error"]


def inputs_of(network: verify_models.Network) -> list[str]:
    """The options that give a network its inputs; those of the generator take random ones but for models of texts."""
    return [] if network.name in verify_models.ZOO and network.name not in text_inputs.NAMES else network.inputs()


def check(options: argparse.Namespace, network: verify_models.Network, backends: str) -> Row:
    """Explains and verifies the model."""
    chosen = [*network.arguments(), "--backends", backends]
    code, explained, said = run_json(options, "explain", *chosen)
    if code != 0:
        return Row(network.name, backends, problem=f"explain failed: {said}")
    counts = collections.Counter(row["backend"] for row in explained["placement"])
    taken = 1 - counts["native"] / counts.total()
    code, verified, said = run_json(options, "verify", *chosen, *inputs_of(network))
    ops = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    errors = tuple((output["name"], error_of(output)) for output in verified.get("outputs", ()))
    problem = ""
    if code != 0:
        problem = f"verify failed: {said or verified}"
    elif taken < LEAST_TAKEN[backends] or (taken == 0 and network.name in WITH_ADDITIONS):
        problem = f"only {taken:.0%} of the ops are by {backends}"
    return Row(network.name, backends, len(explained["regions"]), ops, errors, problem)


def processor() -> str:
    """The name of this machine's processor, as its kernel says it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def page_of(rows: list[Row], options: argparse.Namespace) -> str:
    """The rows as a page in Markdown."""
    done = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True)
    full = " --full" if options.full else ""
    size = "their own size"
    if not options.full:
        size = (
            "a low resolution (`digits` 8x8, `classifier` 48x64, `detector` 64x96, the others the least multiple of\n"
            "32 that they can take) and, if they are transformers, two layers"
        )
    lines = [
        INTRODUCTION,
        f"The models have {size}.",
        f"The numbers are those of {done.stdout.splitlines()[0]} on {processor()}. This command writes the page:",
        "",
        "    python3 tests/models/verify_backends.py --program build/release/bin/headrace \\",
        "      --write-zoo build/release/bin/write_zoo --folder build/models \\",
        f"      --table docs/models-on-backends.md{full}",
        "",
        "| model | backends | ops | regions | error |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        error = f"FAILED: {row.problem.splitlines()[0]}" if row.problem else f"{row.worst():.1e}"
        lines.append(f"| {row.network} | {row.backends} | {row.ops} | {row.regions} | {error} |")
    return "\n".join(lines) + "\n"


def check_all(options: argparse.Namespace, networks: list[verify_models.Network]) -> list[Row]:
    """Checks each network with each list, and prints a line for each; one that is not here is skipped."""
    rows = []
    for network in networks:
        if network.missing:
            print(f"skipped {network.name}: {network.missing}", flush=True)
            continue
        for backends in LISTS:
            row = check(options, network, backends)
            rows.append(row)
            print(
                f"{network.name:14} {backends:18} {row.regions:3} regions, ops: {row.ops}; error {row.worst():.2e}",
                flush=True,
            )
            if row.problem:
                print(f"FAILED {network.name} with {backends}: {row.problem}", flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--write-zoo", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = options.only.split(",") if options.only else list(FULL if options.full or options.table else SMALL)
    if options.full and not options.only:
        names.append("page")  # the detector at its own resolution, on a real picture
    os.environ.setdefault("HEADRACE_PYTHON", str(verify_models.ROOT / ".venv/bin/python"))  # draws the page
    networks = verify_models.networks(names, options.full, options)
    rows = check_all(options, networks)
    absent = [network.name for network in networks if network.missing]
    if options.table and absent:
        sys.exit(f"the page is of all networks, and {', '.join(absent)} cannot be fetched")
    if options.table:
        options.table.write_text(page_of(rows, options))
    return 1 if any(row.problem for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
