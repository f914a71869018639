"""Runs of several threads, by the hop from core to core that was probed before and after each part of the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable

PARTS = 5
SHORT_NS, LONG_NS = 120, 150  # hops between them are of neither class
CLASSES = {"hop < 120": "short", "hop >= 150": "long"}


def class_of(before: float | None, after: float | None) -> str:
    """The class of a part; "mixed" where the two hops are not of one class."""
    if before is None or after is None:
        return "mixed"
    if max(before, after) < SHORT_NS:
        return "short"
    return "long" if min(before, after) >= LONG_NS else "mixed"


def best_ratio(results: list[dict]) -> float | None:
    """The best of these by the best of the peer; None without parts or peer."""
    if not results or "peer_best_seconds" not in results[0]:
        return None
    return min(one["best_seconds"] for one in results) / min(one["peer_best_seconds"] for one in results)


def joined(parts: list[dict]) -> dict:
    """One result of those of the parts: the best of the best, the median of the medians."""
    results = [part["result"] for part in parts]
    made = dict(results[0])
    for key in results[0]:
        if key.endswith("best_seconds"):
            made[key] = min(one[key] for one in results)
        elif key.endswith("seconds") or key == "runs_per_second":
            made[key] = statistics.median(one[key] for one in results)
    made["runs"] = sum(one["runs"] for one in results)
    if "peer_median_seconds" in made:
        made["ratio"] = made["median_seconds"] / made["peer_median_seconds"]
    made["parts"] = [{key: part[key] for key in ("hop_nanoseconds", "class")} | part["times"] for part in parts]
    made["best_ratio_by_hop"] = {
        kind: best_ratio([part["result"] for part in parts if part["class"] == kind]) for kind in CLASSES.values()
    }
    return made


def measure(threads: str, rounds: int, bench: Callable[..., dict], probe: Callable[[], float | None]) -> dict:
    """The report of `bench` with one number of threads; several threads run in parts, with the hop around each."""
    if threads == "1":
        return bench("--threads", threads, "--rounds", str(rounds))
    parts, report = [], {}
    before = probe()
    for _ in range(min(PARTS, rounds)):
        report = bench("--threads", threads, "--rounds", str(-(-rounds // PARTS)))
        after = probe()
        (result,) = report["results"]
        times = {key: value for key, value in result.items() if key.endswith("best_seconds")}
        hop = [before, after]
        parts.append({"hop_nanoseconds": hop, "class": class_of(before, after), "result": result, "times": times})
        before = after
    return report | {"results": [joined(parts)]}


def cells_of(result: dict) -> list[str]:
    """The cells of the columns CLASSES."""
    found = result.get("best_ratio_by_hop", {})
    return ["-" if found.get(kind) is None else f"{found[kind]:.2f}" for kind in CLASSES.values()]
