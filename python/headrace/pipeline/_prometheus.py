"""Metrics of a pipeline in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OUTCOMES = ("succeeded", "failed", "cancelled", "expired", "dropped", "stopped", "refused")
_QUANTILES = (("median", "0.5"), ("p90", "0.9"), ("p99", "0.99"))

# Name, kind, what it is, and the key in the metrics of a stage.
_OF_STAGES = (
    ("stage_items_total", "counter", "Requests that the stage worked on.", "items"),
    ("stage_errors_total", "counter", "Requests that failed in the stage.", "errors"),
    ("stage_skipped_total", "counter", "Requests that had ended before, and passed the stage.", "skipped"),
    ("stage_batches_total", "counter", "Calls of a stage that takes several requests in one.", "batches"),
    ("stage_restarts_total", "counter", "Starts of the stage's processes after they crashed.", "restarts"),
    ("stage_busy_seconds_total", "counter", "Time of the stage's calls.", "busy"),
    ("stage_starved_seconds_total", "counter", "Time in which the stage waited for inputs.", "starved"),
    (
        "stage_blocked_seconds_total",
        "counter",
        "Time in which the stage waited for a place for its outputs.",
        "blocked",
    ),
    ("stage_occupancy", "gauge", "Share of the time in which the replicas of the stage were busy.", "occupancy"),
    ("stage_replicas", "gauge", "Requests that the stage works on at once.", "replicas"),
)


def text_of(metrics: Mapping[str, Any]) -> str:
    """The text of what `Pipeline.metrics` gives.

    Parameters
    ----------
    metrics : dict
        The metrics.

    Returns
    -------
    str
    """
    labels = [_labels(stage=stage["name"], backend=stage["backend"]) for stage in metrics["stages"]]
    lines = _family("submitted_total", "counter", "Requests that were taken.", [("", metrics["submitted"])])
    outcomes = [(_labels(outcome=name), metrics[name]) for name in _OUTCOMES]
    lines += _family(
        "requests_total", "counter", "Requests by their outcome; those that were not taken as refused.", outcomes
    )
    lines += _family("in_flight", "gauge", "Requests that have a place.", [("", metrics["in_flight"])])
    lines += _family("waiting", "gauge", "Requests that no stage has begun.", [("", metrics["waiting"])])
    latency = [(_labels(quantile=share), metrics["latency"][name]) for name, share in _QUANTILES]
    lines += _family("latency_seconds", "gauge", "Time from the submission of a request to its outcome.", latency)
    for name, kind, what, key in _OF_STAGES:
        lines += _family(name, kind, what, zip(labels, (stage[key] for stage in metrics["stages"]), strict=True))
    runs = [
        (_labels(stage=stage["name"], backend=stage["backend"], quantile=share), stage["run"][name])
        for stage in metrics["stages"]
        for name, share in _QUANTILES
    ]
    lines += _family("stage_run_seconds", "gauge", "Time of a call of the stage.", runs)
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, what: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    full = f"headrace_pipeline_{name}"
    return [f"# HELP {full} {what}", f"# TYPE {full} {kind}", *(f"{full}{label} {value}" for label, value in samples)]


def _labels(**labels: str) -> str:
    escaped = {
        name: text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for name, text in labels.items()
    }
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"
