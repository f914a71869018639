"""Measured benchmarks over the release build: ./dev bench SUITE.

models  networks of the test kit's generator (seeded random weights) at full resolution: seconds a run of the compiled
        model and of onnxruntime in the same rounds, taking turns; seconds to compile. `ratio` is ours by theirs, of
        medians: below 1 is faster.

Numbers depend on the machine and on what else runs on it: read ratios, and the best beside the median.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
MODELS = ["mlp", "squeezenet1_1", "mobilenet_v2", "resnet18", "resnet50", "inception_v3", "vgg16"]
SHORT = ["mobilenet_v2", "resnet50"]


def run(*command: str | Path) -> str:
    """The stdout of a command; ends the program with its exit code when it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def make_model(name: str, folder: Path) -> Path:
    """The generated model's file; made once."""
    path = folder / f"{name}.onnx"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        run(BIN / "write_zoo", folder, name)
    return path


def measure(model: Path, args: argparse.Namespace) -> dict:
    """What one model takes."""
    artifact = model.with_suffix(".so")
    begin = time.perf_counter()
    run(BIN / "headrace", "compile", model, "-o", artifact, "--jobs", "2", "--quiet")
    seconds = time.perf_counter() - begin
    options = ["--threads", args.threads, "--rounds", str(args.rounds), "--json", "--quiet"]
    if args.against != "none":
        options += ["--against", args.against]
    report = json.loads(run(BIN / "headrace", "bench", model, *options))
    return report | {"model": model.stem, "compile_seconds": seconds}


def rows_of(report: dict) -> list[list[str]]:
    """The lines of the table for one model."""
    rows = []
    for result in report["results"]:
        row = [report["model"], str(result["threads"])]
        for key in ("best_seconds", "median_seconds", "peer_best_seconds", "peer_median_seconds"):
            row.append(f"{result[key] * 1e3:.2f}" if key in result else "-")
        row.append(f"{result['ratio']:.2f}" if "ratio" in result else "-")
        row.append(f"{report['compile_seconds']:.1f}")
        rows.append(row)
    return rows


def print_table(rows: list[list[str]]) -> None:
    """Columns aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def main() -> None:
    """Runs the suite and prints a table, or one JSON list."""
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=["models"])
    parser.add_argument("--models", default=",".join(SHORT), help=f"of {','.join(MODELS)} (default: %(default)s)")
    parser.add_argument("--threads", default="1", help="numbers of threads, as 1,2 (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="(default: %(default)s)")
    parser.add_argument("--against", default="onnxruntime", choices=["onnxruntime", "none"])
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    args = parser.parse_args()
    names = args.models.split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if not (BIN / "write_zoo").is_file():
        sys.exit("bench: build/release/bin/write_zoo is missing: the release build has no tests; run ./dev check")
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)
    reports = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr)
        reports.append(measure(make_model(name, ROOT / "build/bench"), args))
    if args.json:
        print(json.dumps(reports, indent=2))
        return
    heading = ["model", "threads", "best ms", "median ms", "peer best", "peer median", "ratio", "compile s"]
    print_table([heading] + [row for report in reports for row in rows_of(report)])


if __name__ == "__main__":
    main()
