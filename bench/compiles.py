"""The suite `compile` of ./dev bench: time and memory of compiles, loads and runs, beside another build in turns."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Prints the seconds of a load: of the first, which finds the file in the page cache, as all rounds do.
LOAD = """
import sys, time
import headrace
begin = time.perf_counter()
headrace.load(sys.argv[1])
print(time.perf_counter() - begin)
"""
FIGURES = ("compile_seconds", "compile_peak_bytes", "load_seconds", "run_peak_bytes")


def resources(*command: str | Path) -> tuple[float, int, str]:
    """The wall seconds, peak resident bytes and stdout of a command; ends the program when it fails."""
    begin = time.perf_counter()
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as running:
        out = running.stdout.read()
        _, status, usage = os.wait4(running.pid, 0)
        seconds = time.perf_counter() - begin
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode != 0:
        sys.exit(running.returncode)
    return seconds, usage.ru_maxrss * 1024, out


def measure_once(build: Path, model: Path, folder: Path, inputs: list[str]) -> dict[str, float]:
    """One compile, load and run by the programs in a build's folder `bin`."""
    artifact = folder / "model.so"
    seconds, peak, _ = resources(build / "headrace", "compile", model, "-o", artifact, "--quiet")
    environment = ("env", f"PYTHONPATH={build.parent / 'python'}")
    _, _, load = resources(*environment, os.environ["HEADRACE_PYTHON"], "-c", LOAD, artifact)
    _, run_peak, _ = resources(build / "headrace", "run", artifact, *(inputs or ["--random"]), "--quiet")
    return dict(zip(FIGURES, (seconds, peak, float(load), run_peak), strict=True))


def measure(model: Path, args: argparse.Namespace, inputs: list[str]) -> dict:
    """Builds take turns; the first is this one."""
    builds = [args.bin] + ([args.beside] if args.beside else [])
    found: list[list[dict[str, float]]] = [[] for _ in builds]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for build, rounds in zip(builds, found, strict=True):
                rounds.append(measure_once(build, model, Path(folder), inputs))
    report = {"model": model.stem, "model_bytes": model.stat().st_size, "builds": []}
    for build, rounds in zip(builds, found, strict=True):
        figures = {"build": str(build)}
        for key in FIGURES:
            values = [one[key] for one in rounds]
            figures |= {key: min(values), f"median_{key}": statistics.median(values)}
        figures["peak_by_model"] = figures["compile_peak_bytes"] / report["model_bytes"]
        report["builds"].append(figures)
    if args.beside:
        ours, other = report["builds"]
        report["ratios"] = {key: ours[key] / other[key] for key in FIGURES}
    return report


def rows_of(report: dict) -> list[list[str]]:
    """The lines of the table for one model."""
    rows = []
    for i, one in enumerate(report["builds"]):
        rows.append(
            [
                report["model"],
                ("this", "beside")[i],
                f"{one['compile_seconds']:.2f}",
                f"{one['median_compile_seconds']:.2f}",
                f"{one['compile_peak_bytes'] / 1e6:.0f}",
                f"{one['peak_by_model']:.2f}",
                f"{one['load_seconds'] * 1e3:.1f}",
                f"{one['run_peak_bytes'] / 1e6:.0f}",
            ]
        )
    if "ratios" in report:
        seconds, peak, load, run_peak = (f"{report['ratios'][key]:.2f}" for key in FIGURES)
        rows.append([report["model"], "ratio", seconds, "", peak, "", load, run_peak])
    return rows


def bench(
    models: list[Path],
    args: argparse.Namespace,
    input_options: Callable[[str, Path], list[str]],
    print_table: Callable[[list[list[str]]], None],
) -> None:
    """Prints a table, or one JSON object."""
    reports = []
    for model in models:
        print(f"measuring {model.stem}", file=sys.stderr)
        reports.append(measure(model, args, input_options(model.stem, args.folder)))
    if args.json:
        print(json.dumps({"models": reports}, indent=2))
        return
    heading = ["model", "build", "compile s", "median s", "peak MB", "peak/model", "load ms", "run MB"]
    print_table([heading] + [row for report in reports for row in rows_of(report)])
