"""Stages whose backend is missing where the pipeline runs: they fall back with a report, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")
from headrace.backend import Backend  # noqa: E402
from pipeline_kit import data, module  # noqa: E402

PROGRAM = Path(hr.__file__).parents[2] / "bin" / "headrace"
NAME = "test_pipeline_absent"
INPUT = data()


class Adds(Backend):
    name = NAME

    def supports(self, call: Any) -> bool | str:
        return True if call.op.name == "add" else "is not add"

    def compile(self, regions: list[Any], options: dict[str, Any]) -> list[bytes]:
        return [b"add" for _ in regions]

    def load(self, data: bytes) -> Any:
        def run(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
            outputs[0][...] = inputs[0] + inputs[-1]

        return run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of the backend, and pipelines of it: in a thread, in a process, and with batches."""
    if NAME not in hr.backend.names():
        hr.backend.register(Adds())
    folder = tmp_path_factory.mktemp("fallbacks")
    model = folder / "model.so"
    hr.compile(module("x", lambda x: x + x), backends=[NAME], output=model)
    rows = {}
    for batch in (1, 2):
        rows[batch] = folder / f"rows{batch}.so"
        hr.compile(module("x", lambda x: x + x, shape=(batch, 3)), backends=[NAME], output=rows[batch])
    made = {"model": model}
    for name, code, options in (
        ("thread", model, {}),
        ("process", model, {"isolation": "process"}),
        ("batch", rows, {}),
    ):
        made[name] = folder / f"{name}.so"
        graph = pipeline.Graph()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a process without Python does not have the backend
            stage = graph.stage(code, "detect", **options)
        graph.input("x").connect(stage.input("x"))
        stage.output().connect(graph.output("y"))
        graph.save(made[name])
    return made


def run_elsewhere(text: str, *args: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process that does not have the backend."""
    head = "import sys, warnings, numpy as np\nimport headrace as hr\nfrom headrace import pipeline\n"
    command = [sys.executable, "-c", head + text, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_stage_on_its_backend_falls_back_nowhere(files: dict[str, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pipeline.chain([pipeline.Stage(files["model"], name="detect", fallback="none")]) as pipe:
            np.testing.assert_array_equal(pipe.submit(INPUT).wait(30).numpy(), 2 * INPUT)
            assert pipe.fallbacks == []
            assert pipe.metrics()["stages"][0]["backend"] == NAME
        with pipeline.load(files["thread"], fallback="none") as pipe:
            np.testing.assert_array_equal(pipe.submit(INPUT).wait(30).numpy(), 2 * INPUT)
            assert pipe.metrics()["stages"][0]["backend"] == NAME


def test_a_warm_up_finds_the_backend_that_fails(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def load(self: Adds, data: bytes) -> Any:
        def run(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
            calls.append(inputs[0].tolist())
            raise RuntimeError("the chip is gone")

        return run

    monkeypatch.setattr(Adds, "load", load)
    with pytest.warns(RuntimeWarning, match="the chip is gone") as told:
        pipe = pipeline.load(files["thread"], warm_up=True)
    assert told[0].filename == __file__
    with pipe:
        (event,) = pipe.fallbacks
        assert "the chip is gone" in event["message"]
        np.testing.assert_array_equal(pipe.submit(INPUT).wait(30).numpy(), 2 * INPUT)
    assert calls == [np.zeros_like(INPUT).tolist()]
    with pytest.raises(hr.UserError, match=r"stage 'detect' failed on zeros, before the first request: .*chip is gone"):
        pipeline.load(files["thread"], warm_up=True, fallback="none")


@pytest.mark.parametrize("name", ["thread", "process", "batch"])
def test_a_missing_backend_is_reported(name: str, files: dict[str, Path]) -> None:
    shape = (1, 3) if name == "batch" else INPUT.shape
    text = f"""
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    pipe = pipeline.load(sys.argv[1])
print(*(f"{{one.category.__name__}}: {{one.message}}" for one in caught), sep="\\n")
print(pipe.fallbacks)
print(pipe.submit(np.ones({shape}, "float32")).wait(30).numpy().tolist())
"""
    ran = run_elsewhere(text, files[name])
    assert ran.returncode == 0, ran.stderr
    *told, fallbacks, result = ran.stdout.splitlines()
    found = eval(fallbacks)
    assert len(told) == len(found) == (2 if name == "batch" else 1)
    for line, one in zip(told, found, strict=True):
        assert (one["stage"], one["backend"]) == ("detect", NAME)
        assert (one["reason"], one["reason_name"]) == (8, "BACKEND_MISSING")
        assert line == (
            f"RuntimeWarning: stage 'detect': region {one['region']} runs natively, not by {NAME}: {one['message']}"
        )
        assert NAME in one["message"]
    assert eval(result) == np.full(shape, 2.0).tolist()


@pytest.mark.parametrize("name", ["thread", "process", "batch"])
def test_without_a_fallback_the_error_names_stage_and_file(name: str, files: dict[str, Path]) -> None:
    ran = run_elsewhere("pipeline.load(sys.argv[1], fallback='none')", files[name])
    assert ran.returncode == 1
    last = ran.stderr[ran.stderr.index("Error: ") :]
    assert "stage 'detect'" in last
    if name == "process":
        assert "a stage in a process of its own cannot start" in last
    assert str(files[name]) in last
    assert f"'{NAME}'" in last


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_stages_of_files_fall_back_or_not(isolation: str, files: dict[str, Path]) -> None:
    text = """
stage = pipeline.Stage(sys.argv[1], name="detect", isolation=sys.argv[2], fallback=sys.argv[3])
with pipeline.chain([stage]) as pipe:
    print(pipe.fallbacks[0]["stage"], pipe.fallbacks[0]["backend"])
"""
    assert run_elsewhere(text, files["model"], isolation, "native").stdout == f"detect {NAME}\n"
    ran = run_elsewhere(text, files["model"], isolation, "none")
    assert ran.returncode == 1
    assert "stage 'detect'" in ran.stderr
    assert str(files["model"]) in ran.stderr
    assert f"'{NAME}'" in ran.stderr


def test_the_program_says_the_same(files: dict[str, Path]) -> None:
    # A sanitized program brings the sanitizer that a sanitized build preloads for Python.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def say(*arguments: Any) -> subprocess.CompletedProcess[str]:
        command = [PROGRAM, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)

    (one,) = json.loads(say("run", files["model"], "--random", "--json").stdout)["fallbacks"]
    assert list(one) == ["region", "backend", "reason", "reason_name", "message"]
    assert (one["backend"], one["reason"], one["reason_name"]) == (NAME, 8, "BACKEND_MISSING")
    for action in (["run"], ["bench", "--rounds", "1"]):
        asked = ("pipeline", *action, files["thread"], "--requests", "3")
        (one,) = json.loads(say(*asked, "--json").stdout)["fallbacks"]
        assert list(one) == ["stage", "region", "backend", "reason", "reason_name", "message"]
        assert (one["stage"], one["backend"]) == ("detect", NAME)
        assert (one["reason"], one["reason_name"]) == (8, "BACKEND_MISSING")
        line = f"stage detect: region {one['region']} ran natively, not by {NAME}: {one['message']}\n"
        assert line in say(*asked, "--fallback", "native").stdout
        refused = say(*asked, "--fallback", "none")
        assert (refused.returncode, refused.stdout) == (4, "")
        assert "stage 'detect'" in refused.stderr
        assert str(files["thread"]) in refused.stderr


@pytest.mark.parametrize(
    ("code", "fallback", "message"),
    [
        ("model", "maybe", "fallback: expected 'native' or 'none', got 'maybe'"),
        (abs, "none", "stage 's': fallback is of stages that run programs"),
        ("open", "none", "stage 's': the model is open already: give fallback to headrace.load"),
    ],
)
def test_wrong_fallbacks(code: Any, fallback: str, message: str, files: dict[str, Path]) -> None:
    given = {"model": files["model"], "open": hr.load(files["model"])}.get(code, code)
    with pytest.raises(hr.UserError, match=message):
        pipeline.Graph().stage(given, "s", fallback=fallback)
    with pytest.raises(hr.UserError, match="fallback: expected 'native' or 'none', got 'maybe'"):
        pipeline.load(files["thread"], fallback="maybe")
