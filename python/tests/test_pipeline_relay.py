"""Relay programs as stages: modules with a target, backends and a build function of their own, and the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")
from headrace import pipeline_executor, relay  # noqa: E402
from pipeline_kit import const, data, module  # noqa: E402


def evaluated(mod: Any, kind: str = "debug") -> Any:
    return relay.create_executor(kind, mod=mod).evaluate()


def test_modules_are_compiled(tmp_path: Path) -> None:
    double = module("x", lambda x: x + x)
    scaled = module("x w", lambda x, w: (x * w, x - w))
    stages = [double, pipeline.Stage(scaled, name="scaled", params={"w": data(4)}, target="llvm -mcpu=x86-64-v3")]
    with pipeline.chain(stages) as pipe:
        assert (pipe.inputs, pipe.outputs) == (["x"], ["output0", "output1"])
        product, difference = pipe.submit(data()).wait(30)
        pipe.save(tmp_path / "saved.so")
    np.testing.assert_array_equal(product.numpy(), 2 * data() * data(4))
    np.testing.assert_array_equal(difference.numpy(), 2 * data() - data(4))
    with pipeline.load(tmp_path / "saved.so") as pipe:
        np.testing.assert_array_equal(pipe.submit(data()).wait(30)[0].numpy(), 2 * data() * data(4))


def test_what_an_importer_gives_is_a_module_and_params() -> None:
    scaled = module("x w", lambda x, w: x * w)
    with pytest.raises(hr.UserError, match=r"^stage 'stage0': the code is a tuple; .* Stage\(mod, params=params\)$"):
        pipeline.chain([(scaled, {"w": data(4)})])


def test_modules_have_replicas_processes_and_batches() -> None:
    programs = {rows: module("x", lambda x: x + const(1), shape=(rows, 3)) for rows in (1, 4)}
    stages = [
        pipeline.Stage(programs[1], replicas=2),
        pipeline.Stage(programs[1], isolation="process"),
        pipeline.Stage(programs, name="batches"),
    ]
    with pipeline.chain(stages) as pipe:
        results = list(pipe.map([np.full((1, 3), i, "float32") for i in range(20)]))
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.numpy(), np.full((1, 3), i + 3))


def test_a_build_function_is_called_as_that_of_the_config(tmp_path: Path) -> None:
    double, calls = module("x", lambda x: x + x), []

    def build(mod: Any, target: Any, **options: Any) -> Any:
        calls.append((mod, target, options))
        return relay.build(mod, target, params=options["params"])

    values = {"unused": data()}
    with pipeline.chain([pipeline.Stage(double, name="own", target="llvm", params=values, build=build)]) as pipe:
        np.testing.assert_array_equal(pipe.submit(data()).wait(30).numpy(), 2 * data())
        pipe.save(tmp_path / "saved.so")
    [(mod, target, options)] = calls
    assert mod.same_as(double)
    assert target == "llvm"
    assert options == {"params": values, "target_host": None, "mod_name": "own"}


def test_a_module_has_backends_of_its_own() -> None:
    total = module("x", lambda x: x + x)
    with pipeline.chain([pipeline.Stage(total, name="on", backends=["numpy"])]) as pipe:
        np.testing.assert_array_equal(pipe.submit(data()).wait(30).numpy(), 2 * data())


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_an_evaluated_program_is_a_stage(kind: str, tmp_path: Path) -> None:
    both = module("x y", lambda x, y: (x + y, x - y, x * y))
    graph = pipeline.Graph()
    stage = graph.stage(evaluated(both, kind), "reference")
    for name in ("y", "x"):  # by the names of the function's parameters
        graph.input(name).connect(stage.input(name))
    for number in range(3):
        stage.output(number).connect(graph.output(f"o{number}"))
    with graph.build() as pipe:
        results = pipe.submit({"x": data(5), "y": data(1)}).wait(30)
        with pytest.raises(hr.UserError, match="stage 'reference' runs a program that an executor"):
            pipe.save(tmp_path / "refused.so")
    for result, expected in zip(results, (data(5) + data(1), data(5) - data(1), data(5) * data(1)), strict=True):
        np.testing.assert_array_equal(np.asarray(result), expected)
    assert not (tmp_path / "refused.so").exists()
    with pytest.raises(hr.UserError, match="cannot be imported by name"):
        pipeline.Graph().stage(evaluated(both, kind), isolation="process")
    with pytest.raises(hr.UserError, match="stage 'again' runs a program that an executor"):
        named = pipeline.chain([pipeline.Stage(evaluated(both, kind), name="again", inputs=["a", "b"])])
        named.save(tmp_path / "refused.so")


def test_nested_tuples_of_the_interpreter_are_outputs_in_order() -> None:
    x = relay.var("x", shape=(2,))
    nested = relay.Tuple([relay.Tuple([x, x + x]), x * x])
    stage = pipeline.Stage(evaluated(hr.IRModule.from_expr(relay.Function([x], nested))))
    with pipeline.chain([stage]) as pipe:
        results = pipe.submit(np.array([1, 3], "float32")).wait(30)
    assert [np.asarray(result).tolist() for result in results] == [[1, 3], [2, 6], [1, 9]]


def test_a_build_func_may_evaluate(tmp_path: Path) -> None:
    first, second = module("x", lambda x: (x + x, x)), module("a b", lambda a, b: a - b)
    cfg = pipeline_executor.PipelineConfig()
    cfg["input"]["d"].connect(cfg[first]["input"]["x"])
    for number, name in enumerate("ab"):
        cfg[first]["output"][number].connect(cfg[second]["input"][name])
    cfg[second]["output"][0].connect(cfg["output"][0])
    cfg[first].build_func = lambda mod, target, **options: evaluated(mod)
    factory = pipeline_executor.build(cfg)
    running = pipeline_executor.PipelineModule(factory)
    running.set_input("d", data())
    running.run()
    np.testing.assert_array_equal(running.get_output(timeout=30)[0].numpy(), data())
    with pytest.raises(pipeline_executor.PipelineExecutorError, match="stage 'mod1' runs a program that an executor"):
        factory.export_library(tmp_path)


ADD = module("x", lambda x: x + x)


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (ADD, {"backends": ["nope"]}, "stage 's': .*nope"),
        (ADD, {"params": {"z": data()}}, "stage 's': params: the module has no parameter 'z'; it has x"),
        (ADD, {"target": "nonsense"}, "stage 's': .*nonsense"),
        (ADD, {"build": lambda *a, **k: None}, "stage 's': build gave .*it gives what relay.build gives"),
        (ADD, {"build": lambda mod, *a, **k: mod}, "stage 's': build gave .*IRModule"),
        (ADD, {"build": relay.build, "backends": ["onednn"]}, "stage 's': backends are of modules that hr.compile"),
        (abs, {"target": "llvm"}, "stage 's': target, backends, params and build are of a stage whose code is a Relay"),
    ],
)
def test_wrong_options_of_modules_name_the_stage(code: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.UserError, match=message):
        pipeline.Graph().stage(code, "s", **options)
