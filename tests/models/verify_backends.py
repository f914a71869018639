#!/usr/bin/env python3
"""Networks partitioned over backends: each list of backends gives the results of the float64 interpreter.

    tests/models/verify_backends.py --program headrace --write-zoo write_zoo --folder FOLDER [--full]

Prints for each network and list the ops of each backend, the regions and the error. --full takes all networks of the
generator at their own resolution; otherwise four at a low one.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
from pathlib import Path

SMALL = ("mlp", "squeezenet1_1", "mobilenet_v2", "resnet18")
FULL = (*SMALL, "resnet50", "vgg16", "inception_v3")
LISTS = ("onednn", "onednn,ccompiler", "ccompiler,onednn", "examplejson")
# What a list must take: without it, a backend that takes nothing would pass. examplejson adds tensors of equal sizes.
LEAST_TAKEN = {"onednn": 0.9, "onednn,ccompiler": 0.9, "ccompiler,onednn": 0.9, "examplejson": 0.0}


def run_json(options: argparse.Namespace, *words: str) -> tuple[int, dict, str]:
    command = [options.program, *words, "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr.strip()


def check(options: argparse.Namespace, model: Path, backends: str) -> str:
    """Prints a line; returns what is wrong, or an empty text."""
    code, explained, errors = run_json(options, "explain", str(model), "--backends", backends)
    if code != 0:
        return f"explain failed: {errors}"
    counts = collections.Counter(row["backend"] for row in explained["placement"])
    taken = 1 - counts["native"] / counts.total()
    code, verified, errors = run_json(options, "verify", str(model), "--backends", backends)
    worst = max((row["error"] for row in verified.get("outputs", ())), default=float("nan"))
    ops = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{model.stem:14} {backends:18} {len(explained['regions']):3} regions, ops: {ops}; error {worst:.2e}")
    if code != 0:
        return f"verify failed: {errors or verified}"
    if taken < LEAST_TAKEN[backends]:
        return f"only {taken:.0%} of the ops are by {backends}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--write-zoo", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = FULL if options.full else SMALL
    size = [] if options.full else ["--small"]
    subprocess.run([options.write_zoo, str(options.folder), *names, *size], check=True, stdout=subprocess.DEVNULL)
    failures = 0
    for name in names:
        for backends in LISTS:
            if problem := check(options, options.folder / f"{name}.onnx", backends):
                failures += 1
                print(f"FAILED {name} with {backends}: {problem}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
