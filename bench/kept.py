"""The suite `cache` of ./dev bench: a compile, and the same compile by processes that find its result in a cache."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Prints the seconds of a compile; the import of the package is not among them.
COMPILE = """
import sys, time
import headrace
begin = time.perf_counter()
headrace.compile(sys.argv[1], cache=sys.argv[2])
print(time.perf_counter() - begin)
"""


def measure(model: Path, rounds: int, run: Callable[..., str]) -> dict:
    """Compiles a model in one process, with an empty cache, and once in each of the further ones."""
    with tempfile.TemporaryDirectory() as folder:
        command = (os.environ["HEADRACE_PYTHON"], "-c", COMPILE, model, folder)
        compiled = float(run(*command))
        kept = [float(run(*command)) for _ in range(rounds)]
    return {
        "model": model.stem,
        "compile_seconds": compiled,
        "kept_best_seconds": min(kept),
        "kept_median_seconds": statistics.median(kept),
        "ratio": statistics.median(kept) / compiled,
    }


def bench(
    models: list[Path],
    args: argparse.Namespace,
    run: Callable[..., str],
    print_table: Callable[[list[list[str]]], None],
) -> None:
    """Prints a table, or one JSON object."""
    reports = []
    for model in models:
        print(f"measuring {model.stem}", file=sys.stderr)
        reports.append(measure(model, args.rounds, run))
    if args.json:
        print(json.dumps({"models": reports}, indent=2))
        return
    rows = [["model", "compile s", "kept best s", "median s", "ratio"]]
    for one in reports:
        seconds = [one[key] for key in ("compile_seconds", "kept_best_seconds", "kept_median_seconds")]
        rows.append([one["model"], *(f"{value:.3f}" for value in seconds), f"{one['ratio']:.3f}"])
    print_table(rows)
