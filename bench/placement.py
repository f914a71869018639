"""Plans of placement by cost beside the plans that they are chosen from, by the clock: ./dev bench placement."""

from __future__ import annotations

import collections
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Run = Callable[..., str]
    InputOptions = Callable[[str, Path], list[str]]

BACKENDS = "onednn,ccompiler"
SINGLE = ("native", "onednn", "order")  # plans without costs
CHOSEN = ("model", "profile")  # plans of least cost, by modelled and by measured costs


def options_of(plan: str, costs: Path) -> list[str | Path]:
    """Return the options that compile a model by one of the plans."""
    if plan == "native":
        return []
    if plan == "onednn":
        return ["--backends", "onednn"]
    if plan == "order":
        return ["--backends", BACKENDS]
    return ["--backends", BACKENDS, "--placement", "cost", *(["--costs", costs] if plan == "profile" else [])]


def explained(model: Path, plan: str, costs: Path, headrace: Path, run: Run) -> dict:
    """Return a plan's ops of each backend, its regions, and its cost with the source, as headrace explain has them."""
    report = json.loads(run(headrace, "explain", model, *options_of(plan, costs), "--json"))
    counts = collections.Counter(op["backend"] for op in report["placement"])
    places = [[op["op"], op["kind"], op["backend"], op["region"]] for op in report["placement"]]
    return {"ops": dict(counts), "regions": len(report["regions"]), "cost": report["cost"], "places": places}


def first_of(plans: dict[str, dict]) -> dict[str, str]:
    """Return for each plan the first one that has all ops in the same places, which is the same program."""
    return {name: next(one for one in plans if plans[one]["places"] == plans[name]["places"]) for name in plans}


def measure(model: Path, args: argparse.Namespace, run: Run, input_options: InputOptions) -> dict:
    """Compile a model by each plan, and time all of them in the same rounds, on the inputs that the options name.

    Plans with all ops in the same places are one program, which is timed once: two times of it would differ by noise,
    and the least of several plans would gain from it.
    """
    headrace, costs = args.bin / "headrace", model.with_suffix(".costs.json")
    run(headrace, "profile", model, "--backends", BACKENDS, "-o", costs, "--rounds", str(args.rounds), "--quiet")
    plans = {plan: explained(model, plan, costs, headrace, run) for plan in (*SINGLE, *CHOSEN)}
    same = first_of(plans)
    timed_plans = sorted(set(same.values()), key=list(plans).index)
    artifacts = []
    for plan in timed_plans:
        artifacts.append(model.with_suffix(f".{plan}.so"))
        run(headrace, "compile", model, "-o", artifacts[-1], *options_of(plan, costs), "--jobs", "2", "--quiet")
    beside = [word for artifact in artifacts[1:] for word in ("--beside", artifact)]
    options = [*input_options(model.stem, args.folder), "--rounds", str(args.rounds), "--json", "--quiet"]
    timed = json.loads(run(headrace, "bench", artifacts[0], *beside, *options))
    report = {"model": model.stem, "rounds": args.rounds, "plans": {}}
    results = dict(zip(timed_plans, timed["results"], strict=True))
    for plan, about in plans.items():
        times = {key: results[same[plan]][key] for key in ("best_seconds", "median_seconds")}
        report["plans"][plan] = times | about | {"same_as": same[plan] if same[plan] != plan else None}
        del report["plans"][plan]["places"]
    for plan in CHOSEN:
        for key in ("best", "median"):
            least = min(report["plans"][single][f"{key}_seconds"] for single in SINGLE)
            report["plans"][plan][f"{key}_ratio"] = report["plans"][plan][f"{key}_seconds"] / least
    return report


def rows_of(report: dict) -> list[list[str]]:
    """Return the lines of the table for one model."""
    rows = []
    for name, plan in report["plans"].items():
        cost = plan["cost"]
        rows.append(
            [report["model"], name]
            + [f"{plan[f'{key}_seconds'] * 1e3:.3f}" for key in ("best", "median")]
            + [f"{plan[f'{key}_ratio']:.3f}" if f"{key}_ratio" in plan else "-" for key in ("best", "median")]
            + ["-" if cost is None else f"{cost['seconds'] * 1e3:.3f}", str(plan["regions"])]
            + [", ".join(f"{count} {backend}" for backend, count in sorted(plan["ops"].items()))]
            + [plan["same_as"] or "-"]
        )
    return rows


HEADING = [
    "model",
    "plan",
    "best ms",
    "median ms",
    "best ratio",
    "median ratio",
    "cost ms",
    "regions",
    "ops",
    "same as",
]


def bench(
    models: list[Path], args: argparse.Namespace, run: Run, input_options: InputOptions, print_table: Callable
) -> None:
    """Measure models and print a table, or one JSON object."""
    reports = []
    for model in models:
        print(f"measuring {model.stem}", file=sys.stderr)
        reports.append(measure(model, args, run, input_options))
    if args.json:
        print(json.dumps({"models": reports}, indent=2))
    else:
        print_table([HEADING] + [row for report in reports for row in rows_of(report)])
