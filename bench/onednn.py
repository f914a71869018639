"""The backend onednn beside oneDNN called by hand and beside onnxruntime, on one thread: ./dev bench onednn."""

from __future__ import annotations

import collections
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Run = Callable[..., str]

TURNS = 5  # how often the region and the primitives by hand take turns
IMAGE = re.compile(
    r"(?:g(\d+))?mb(\d+)_?ic(\d+)(?:oc(\d+))?_ih(\d+)oh(\d+)kh(\d+)sh(\d+)dh(\d+)ph(\d+)"
    r"_iw(\d+)ow(\d+)kw(\d+)sw(\d+)dw(\d+)pw(\d+)"
)


def layout_of(memory: str, name: str) -> str:
    """The layout of a tensor, by its name in a line of oneDNN's verbose output."""
    found = re.search(rf"{name}_f32:[a-z]*:blocked:(\w+):", memory)
    if found is None:
        sys.exit(f"bench: no layout of {name} in '{memory}'")
    return found.group(1)


def image_numbers(problem: str) -> dict[str, int]:
    """The sizes of a convolution or a pool."""
    found = IMAGE.match(problem)
    if found is None:
        sys.exit(f"bench: '{problem}' does not describe a problem of images")
    names = ["g", "n", "ic", "oc", "ih", "oh", "kh", "sh", "dh", "ph", "iw", "ow", "kw", "sw", "dw", "pw"]
    return {name: int(text or 1) for name, text in zip(names, found.groups(), strict=True)}


def picked(sizes: dict[str, int], names: str) -> list[int]:
    """Some of the sizes, in order."""
    return [sizes[name] for name in names.split()]


def post_ops_of(kind: str, attributes: str) -> list[str]:
    """The post-ops of a primitive, of those that onednn-by-hand knows."""
    found = re.search(r"attr-post-ops:(\S+)", attributes)
    names = [] if found is None else found.group(1).split("+")
    known = ("sum", "eltwise_relu", "eltwise_clip:0:6") if kind == "convolution" else ()
    for name in names:
        if name not in known:
            sys.exit(f"bench: {name} on a {kind} is not a post-op that onednn-by-hand knows; give other --models")
    return names


def by_hand(line: str) -> str:
    """A line of oneDNN's verbose output as one of bench/onednn_by_hand.cc."""
    _, _, _, kind, implementation, _, memory, attributes, algorithm, problem, _ = line.split(",")
    words: list[object] = []
    post_ops = post_ops_of(kind, attributes)
    if kind == "convolution":
        sizes = image_numbers(problem)
        flags = [int(name in post_ops) for name in ("sum", "eltwise_relu", "eltwise_clip:0:6")]
        words = [*flags, int("bia_f32" in memory), *picked(sizes, "n g ic oc ih iw oh ow kh kw sh sw dh dw ph pw")]
    elif kind == "pooling_v2":
        kind, sizes = "pool", image_numbers(problem)
        words = [
            int("avg" in algorithm),
            layout_of(memory, "src"),
            *picked(sizes, "n ic ih iw oh ow kh kw sh sw ph pw"),
        ]
    elif kind == "inner_product":
        kind = "dense"
        words = [int("bia_f32" in memory), *re.findall(r"\d+", problem)]
    elif kind == "reorder":
        words = [layout_of(memory, "src"), layout_of(memory, "dst"), *problem.split("x")]
    else:
        sys.exit(f"bench: {kind} is not a primitive that onednn-by-hand knows; give other --models")
    return " ".join(map(str, [kind, implementation, *words]))


def primitives_of(artifact: Path, headrace: Path) -> list[str]:
    """The primitives of one run, as lines of bench/onednn_by_hand.cc. One run more prints so many lines more."""

    def lines(runs: int) -> list[str]:
        command = [headrace, "bench", artifact, "--rounds", str(runs), "--quiet"]
        environment = os.environ | {"DNNL_VERBOSE": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return [line for line in done.stdout.splitlines() if line.startswith("onednn_verbose,exec,")]

    one, two = lines(1), lines(2)
    return [by_hand(line) for line in two[len(one) :]]


def by_kind(primitives: list[dict], lines: list[str]) -> dict[str, dict]:
    """For each kind of primitive its seconds, operations and bytes a second."""
    sums: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for one, line in zip(primitives, lines, strict=True):
        sums[kind_of(line.split())].update(
            seconds=one["best_seconds"],
            operations=one["operations"],
            bytes=one["bytes"] + one["weights_bytes"],
            count=1,
        )
    return {
        kind: {
            "count": total["count"],
            "seconds": total["seconds"],
            "gflops": total["operations"] / total["seconds"] / 1e9,
            "gigabytes": total["bytes"] / total["seconds"] / 1e9,
        }
        for kind, total in sums.items()
    }


def kind_of(words: list[str]) -> str:
    """The kind that src/backends/onednn/cost.cc has a share for."""
    if words[0] != "convolution":
        return words[0]
    groups, channels, kernel, stride = int(words[7]), int(words[8]), words[14:16], int(words[16])
    if groups > 1:
        return "strided depthwise" if stride > 1 else "depthwise"
    if kernel == ["1", "1"]:
        return "pointwise"
    return "few channels" if channels < 16 else "spatial"


def measure(model: Path, args: argparse.Namespace, run: Run) -> dict:
    """Measures one model: the backend in turns with primitives by hand, and in the rounds of onnxruntime."""
    headrace, artifact = args.bin / "headrace", model.with_suffix(".onednn.so")
    run(headrace, "compile", model, "-o", artifact, "--backends", "onednn", "--jobs", "2", "--quiet")
    lines = primitives_of(artifact, headrace)
    listed = model.with_suffix(".primitives")
    listed.write_text("\n".join(lines) + "\n")
    report: dict = {"model": model.stem, "primitives": len(lines)}
    ours, theirs = [], []
    for _ in range(TURNS):
        rounds = str(max(1, args.rounds // TURNS))
        ours.append(json.loads(run(headrace, "bench", artifact, "--rounds", rounds, "--json", "--quiet"))["results"][0])
        theirs.append(json.loads(run(args.bin / "onednn-by-hand", listed, rounds)))
    for key, found in (("best", min), ("median", statistics.median)):
        report[f"{key}_seconds"] = found(one[f"{key}_seconds"] for one in ours)
        report[f"by_hand_{key}_seconds"] = found(one[f"{key}_seconds"] for one in theirs)
        report[f"by_hand_{key}_ratio"] = report[f"{key}_seconds"] / report[f"by_hand_{key}_seconds"]
    report["other_implementations"] = sum(one["is_other"] for one in theirs[0]["primitives"])
    best = [min(turn["primitives"][i]["best_seconds"] for turn in theirs) for i in range(len(lines))]
    primitives = [one | {"best_seconds": seconds} for one, seconds in zip(theirs[0]["primitives"], best, strict=True)]
    report["kinds"] = by_kind(primitives, lines)
    if args.against != "none":
        peers = ["--against", args.against, "--against-model", model]
        against = json.loads(
            run(headrace, "bench", artifact, *peers, "--rounds", str(args.rounds), "--json", "--quiet")
        )
        result = against["results"][0]
        report["peer"] = args.against
        for key in ("best", "median"):
            report[f"peer_{key}_seconds"] = result[f"peer_{key}_seconds"]
            report[f"peer_{key}_ratio"] = result[f"{key}_seconds"] / result[f"peer_{key}_seconds"]
    return report


def row_of(report: dict) -> list[str]:
    """The line of the table for one model."""
    row = [report["model"], str(report["primitives"])]
    for part in ("", "by_hand_", "peer_"):
        for key in ("best", "median"):
            name = f"{part}{key}_seconds"
            row.append(f"{report[name] * 1e3:.3f}" if name in report else "-")
    for part in ("by_hand", "peer"):
        for key in ("best", "median"):
            name = f"{part}_{key}_ratio"
            row.append(f"{report[name]:.3f}" if name in report else "-")
    return [*row, str(report["other_implementations"])]


HEADING = ["model", "primitives", "best ms", "median ms", "by hand best", "median", "peer best", "median"]
HEADING += ["by hand: best ratio", "median", "peer: best ratio", "median", "other implementations"]


def bench(models: list[Path], args: argparse.Namespace, run: Run, print_table: Callable) -> None:
    """Measures models and prints tables, or one JSON object."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the program by hand
    reports = []
    for model in models:
        print(f"measuring {model.stem}", file=sys.stderr)
        reports.append(measure(model, args, run))
    if args.json:
        print(json.dumps({"models": reports}, indent=2))
        return
    print_table([HEADING] + [row_of(report) for report in reports])
    rows = [["model", "kind", "primitives", "ms", "GFLOP/s", "GB/s"]]
    for report in reports:
        for kind, one in sorted(report["kinds"].items()):
            rows.append([report["model"], kind, str(one["count"]), f"{one['seconds'] * 1e3:.3f}"])
            rows[-1] += [f"{one['gflops']:.1f}" if one["gflops"] > 0 else "-", f"{one['gigabytes']:.1f}"]
    print_table(rows)
