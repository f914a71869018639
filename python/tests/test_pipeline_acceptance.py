"""A program written for TVM's pipeline executor, from the configuration to the results of the file that it exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pytest.importorskip("headrace.pipeline", reason="built without pipelines")
from headrace import cc, graph_executor, pipeline_executor, relay  # noqa: E402
from pipeline_kit import connect_three, const, data, module, three_modules  # noqa: E402

SCALE = data(3)


def run_alone(mod: Any, inputs: dict[str, np.ndarray], params: dict[str, np.ndarray] | None = None) -> list[np.ndarray]:
    """The outputs of one module, built and run by itself."""
    run = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](hr.cpu()))
    for name, value in inputs.items():
        run.set_input(name, value)
    run.run()
    return [run.get_output(i).numpy() for i in range(run.get_num_outputs())]


def run_in_turn(mods: tuple[Any, Any, Any], a: np.ndarray, b: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    """The outputs of the pipeline by its modules, one after another."""
    first, second, third = mods
    made = run_alone(first, {"data_0": a})
    [middle] = run_alone(second, {"data_0": made[0], "data_1": b}, {"scale": scale})
    [last] = run_alone(third, {"data_0": made[1], "data_1": middle})
    return [last, made[2]]


def test_three_modules_from_the_configuration_to_the_exported_file(tmp_path: Path) -> None:
    first, _, third = three_modules()
    second = module("data_0 data_1 scale", lambda x, y, s: (x + const(2) + y + const(3)) * s)
    cfg = connect_three(pipeline_executor.PipelineConfig(), first, second, third)
    cfg["param_group"]["scales"].connect(cfg[second]["param"])
    cfg[second].params = {"scale": SCALE}
    calls = []

    def build_func(mod: Any, target: Any, **options: Any) -> Any:
        calls.append((mod, target, options))
        return relay.build(mod, target, params=options["params"])

    cfg[first].build_func = build_func
    cfg[first].target, cfg[second].target, cfg[third].target = "llvm -mcpu=x86-64-v2", "llvm", "llvm -mcpu=x86-64-v3"
    before = cfg.get_config()
    printed = str(cfg)
    assert str(cfg) == printed  # printing changes nothing
    assert cfg.get_config() == before
    for line in ("|data_a: mod1:data_0", "|mod1.output(1)-> mod3.data_0", "|output(0) : mod3.output(0)"):
        assert line in printed
    factory = pipeline_executor.build(cfg)
    assert calls == [
        (first, "llvm -mcpu=x86-64-v2", {"params": None, "target_host": None, "mod_name": "default"}),
    ]
    (tmp_path / "moved").mkdir()
    exported = Path(factory.export_library(tmp_path))
    exported = exported.rename(tmp_path / "moved" / exported.name)
    mods = (first, second, third)
    for running in (pipeline_executor.create(factory), pipeline_executor.PipelineModule.load_library(exported)):
        assert running.get_params_group_pipeline_map("scales") == 2
        frames = [(data(i), data(100 - 7 * i)) for i in range(5)]
        for number, (a, b) in enumerate(frames):
            if number == 3:
                running.set_params("scales", {"scale": data(50)})
            running.set_input("data_a", a)
            running.set_input("data_b", b)
            running.run()
        for number, (a, b) in enumerate(frames):
            outputs = running.get_output(timeout=30)
            expected = run_in_turn(mods, a, b, data(50) if number >= 3 else SCALE)
            assert len(outputs) == 2
            for output, wanted in zip(outputs, expected, strict=True):
                np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-6)  # targets differ in the rounding of FMAs
        running.stop()


def doubling(**settings: Any) -> Any:
    """The factory of a pipeline of one module, which has these settings."""
    double = module("x", lambda x: x + x)
    cfg = pipeline_executor.PipelineConfig()
    cfg["input"]["d"].connect(cfg[double]["input"]["x"])
    cfg[double]["output"][0].connect(cfg["output"][0])
    for name, value in settings.items():
        setattr(cfg[double], name, value)
    return pipeline_executor.build(cfg)


def test_fcompile_and_export_cc_link_the_module(tmp_path: Path) -> None:
    calls = []

    def fcompile(output: str, objects: list[str], **options: Any) -> None:
        calls.append((len(objects), options))
        cc.create_shared(output, objects, **options)

    for settings, expected in (
        ({"fcompile": fcompile}, [(1, {})]),
        ({"fcompile": fcompile, "export_cc": "cc"}, [(1, {"cc": "cc"})]),
        ({"export_cc": "cc"}, []),
    ):
        calls.clear()
        running = pipeline_executor.PipelineModule.load_library(doubling(**settings).export_library(tmp_path))
        assert calls == expected
        running.set_input("d", data())
        running.run()
        np.testing.assert_array_equal(running.get_output(timeout=30)[0].numpy(), 2 * data())
        running.stop()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"export_cc": "no-such-compiler"}, "export_library: mod1: .*no-such-compiler"),
        ({"fcompile": lambda *args: None}, "export_library: mod1: fcompile: it returned and there is no file"),
        (
            {"export_cc": "cc", "build_func": lambda *args, **options: abs},
            "export_library: mod1: fcompile and export_cc link what relay.build gives",
        ),
    ],
)
def test_a_compiler_that_fails_is_named(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(pipeline_executor.PipelineExecutorError, match=message):
        doubling(**settings).export_library(tmp_path)
    assert list(tmp_path.iterdir()) == []
