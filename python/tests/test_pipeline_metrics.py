"""The metrics of a pipeline as text, the occupancy of its stages, and the backends and causes of failures."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
SAMPLE = re.compile(r'(headrace_pipeline_\w+)(\{(?:\w+="(?:[^"\\]|\\.)*",?)+\})? (\S+)')


def samples(text: str) -> dict[str, float]:
    """The samples of a text by name and labels; each has a family with help and type before it."""
    found, family = {}, ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
        elif line.startswith("# TYPE "):
            assert line.split()[2:] in ([family, "counter"], [family, "gauge"])
            assert family.endswith("_total") == line.endswith("counter")
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == family
            assert name + (labels or "") not in found
            found[name + (labels or "")] = float(value)
    return found


def sleepy(x: int) -> int:
    if x == 3:
        raise ValueError("planted")
    time.sleep(0.004)
    return x


def test_metrics_as_text_for_prometheus() -> None:
    stages = [abs, pipeline.Stage(sleepy, name='slow "one"\\', backend="own", replicas=2)]
    with pipeline.chain(stages) as pipe:
        list(pipe.map(range(20), return_errors=True))
        text = pipe.metrics_text()
        metrics = pipe.metrics()
    assert text.endswith("\n")
    found = samples(text)
    slow = r'stage="slow \"one\"\\",backend="own"'
    assert found["headrace_pipeline_submitted_total"] == 20
    assert found['headrace_pipeline_requests_total{outcome="succeeded"}'] == 19
    assert found['headrace_pipeline_requests_total{outcome="failed"}'] == 1
    assert found[f"headrace_pipeline_stage_items_total{{{slow}}}"] == 20
    assert found[f"headrace_pipeline_stage_errors_total{{{slow}}}"] == 1
    assert found[f"headrace_pipeline_stage_replicas{{{slow}}}"] == 2
    assert found[f"headrace_pipeline_stage_busy_seconds_total{{{slow}}}"] >= 19 * 0.004
    assert found[f'headrace_pipeline_stage_run_seconds{{{slow},quantile="0.5"}}'] >= 0.004
    assert found['headrace_pipeline_latency_seconds{quantile="0.99"}'] >= 0.004
    assert found[f"headrace_pipeline_stage_occupancy{{{slow}}}"] > 0
    busy = metrics["stages"][1]
    assert busy["occupancy"] == pytest.approx(busy["busy"] / metrics["seconds"] / 2)


def test_a_busy_stage_is_occupied_and_an_idle_one_is_not() -> None:
    with pipeline.chain([abs, pipeline.Stage(sleepy, name="slow")]) as pipe:
        list(pipe.map(range(10, 60)))
        first, slow = (stage["occupancy"] for stage in pipe.metrics()["stages"])
    assert 0 <= first < 0.3
    assert 0.5 < slow <= 1


def test_a_late_request_has_a_cause() -> None:
    with pipeline.chain([pipeline.Stage(lambda x: time.sleep(0.3), name="slow", time_limit=0.05)]) as pipe:
        late = pipe.submit(1).exception(60)
    assert type(late.cause) is TimeoutError
    assert "stage 'slow' did not return within its time limit" in str(late.cause)
