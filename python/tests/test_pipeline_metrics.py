"""The metrics of a pipeline as text, the occupancy of its stages, and the backends and causes of failures."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import numpy as np
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


def test_the_backend_of_a_stage_is_that_of_its_program(tmp_path: Path) -> None:
    shapes = {"x": (1, 1, 8, 8)}
    paths = {"plain": tmp_path / "plain.so", "numpy": tmp_path / "numpy.so"}
    compiled = hr.compile(DIGITS, shapes=shapes, output=paths["plain"])
    hr.compile(DIGITS, shapes=shapes, backends=["numpy"], output=paths["numpy"])
    graph = pipeline.Graph()
    codes = [paths["plain"], compiled, hr.runtime.load_module(str(paths["plain"])), paths["numpy"]]
    for number, code in enumerate(codes):
        stage = graph.stage(code, f"s{number}")
        graph.input("x").connect(stage.input("x"))
        stage.output().connect(graph.output(f"y{number}"))
    named = graph.stage(paths["plain"], "named", backend="mine")
    graph.input("x").connect(named.input("x"))
    named.output().connect(graph.output("named"))
    with graph.build() as pipe:
        backends = [stage["backend"] for stage in pipe.metrics()["stages"]]
        pipe.save(tmp_path / "saved.so")
    assert backends[:3] == ["native"] * 3
    assert "numpy" in backends[3].split(", ")
    assert backends[4] == "mine"
    with pipeline.load(tmp_path / "saved.so") as pipe:
        assert [stage["backend"] for stage in pipe.metrics()["stages"]] == backends
    with pipeline.chain([pipeline.Stage(paths["plain"], isolation="process")]) as pipe:
        assert pipe.metrics()["stages"][0]["backend"] == "native"
    with pipeline.chain([lambda x: np.zeros(3), paths["plain"]]) as pipe:
        error = pipe.submit(1).exception(30)
        assert (error.stage, error.backend) == ("plain", "native")
        assert "stage 'plain' (native)" in str(error)
        assert pipe.metrics()["stages"][0]["backend"] == ""


def abort(x: int) -> int:
    os.abort()


def test_lost_and_late_requests_have_a_cause() -> None:
    name = f"{__name__}:abort"
    with pipeline.chain([pipeline.Stage(name, inputs=["x"], isolation="process")]) as pipe:
        error = pipe.submit(1).exception(60)
    assert type(error) is pipeline.StageLost
    assert type(error.cause) is ChildProcessError
    assert error.__cause__ is error.cause
    assert "signal 6" in str(error.cause)
    stages = [pipeline.Stage("time:sleep", inputs=["seconds"], isolation="process", time_limit=0.2)]
    with pipeline.chain(stages) as pipe:
        late = pipe.submit(30).exception(60)
    assert type(late) is pipeline.StageTimeout
    assert type(late.cause) is TimeoutError
    assert "time limit of 0.2 seconds" in str(late.cause)
    with pipeline.chain([pipeline.Stage(lambda x: time.sleep(0.3), name="slow", time_limit=0.05)]) as pipe:
        late = pipe.submit(1).exception(60)
    assert type(late.cause) is TimeoutError
    assert "stage 'slow' did not return within its time limit" in str(late.cause)
