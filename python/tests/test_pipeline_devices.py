"""Stages on simulated devices: their values, memory, links and times; saved, split and loaded."""

from __future__ import annotations

import time
from pathlib import Path

import headrace as hr
import numpy as np
import pytest
from headrace import _core, pipeline
from headrace.pipeline_executor import PipelineConfig, PipelineModule, build
from headrace.relay import parse

WIDTH = 64
PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) { multiply(add(%x, 1f), 2f) }
"""
LAYERS = """#[version = "0.0.5"]
def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {
  nn.dense(tanh(nn.dense(%x, %w, units=256)), %w, units=256)
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("devices")
    (folder / "program.relay").write_text(PROGRAM)
    path = str(folder / "program.so")
    hr.compile(folder / "program.relay", threads=1, output=path)
    return path


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


def chain_on(program: str, devices: list[object], **options: object) -> pipeline.Pipeline:
    return pipeline.chain([pipeline.Stage(program, device=device) for device in devices], **options)


def stage_names(pipe: pipeline.Pipeline) -> list[str]:
    return [stage["name"] for stage in pipe.metrics()["stages"]]


def test_text_of_a_device() -> None:
    device = pipeline.SimulatedDevice(1, speed=0.5, memory=64 << 20, link=2e9, latency=20e-6)
    text = "sim:1(speed=0.5, memory=64MiB, link=2GB/s, latency=20us)"
    assert _core.simulated_device(str(device)) == text
    assert _core.simulated_device(str(pipeline.SimulatedDevice())) == "sim:0(speed=1)"
    assert (device.device_type, device.device_id) == (12, 1)
    with pytest.raises(hr.UserError, match="its speed is '0'"):
        pipeline.SimulatedDevice(speed=0)
    with pytest.raises(
        hr.UserError, match="'sim\\(pace=1\\)' is not a simulated device: 'pace' is not one of its numbers"
    ):
        pipeline.Graph().stage(abs, device="sim(pace=1)")
    with pytest.raises(hr.UserError, match="device: cuda is not a CPU; stages run on CPUs, and on simulated devices"):
        pipeline.Graph().stage(abs, device="cuda")


def test_values_pass_between_devices(program: str, x: np.ndarray) -> None:
    devices = ["cpu", "sim:0(speed=0.9)", None, pipeline.SimulatedDevice(1, latency=1e-4)]
    with chain_on(program, devices) as pipe:
        results = list(pipe.map([x] * 20))
        transfers = [stage for stage in pipe.metrics()["stages"] if " to sim:" in stage["name"]]
        assert [stage["items"] for stage in transfers] == [20, 20]
        assert all(stage["run"]["median"] >= 1e-4 for stage in transfers if stage["name"].endswith("sim:1"))
    expected = x
    for _ in devices:
        expected = (expected + 1) * 2
    for result in results:
        np.testing.assert_array_equal(result.numpy(), expected)


def test_one_device_hands_over_in_place(program: str, x: np.ndarray) -> None:
    with chain_on(program, ["sim:0", "sim:0"]) as pipe:
        np.testing.assert_array_equal(pipe.submit(x).wait().numpy(), ((x + 1) * 2 + 1) * 2)
        assert sorted(name for name in stage_names(pipe) if "sim:0" in name)[1:] == ["x to sim:0"]
        assert len(stage_names(pipe)) == 4


def test_a_function_reads_what_a_device_made(program: str, x: np.ndarray) -> None:
    stages = [lambda x: x + 1, pipeline.Stage(program, device="sim:0"), lambda y: float(y.sum())]
    with pipeline.chain(stages) as pipe:
        assert pipe.submit(x).wait() == float(((x + 2) * 2).sum())
        with pytest.raises(pipeline.StageFailed, match="has shape"):
            pipe.submit(x[:2]).wait()
        assert pipe.submit(x).wait() == float(((x + 2) * 2).sum())
    with pytest.raises(hr.UserError, match="stage 'abs': input 'x' takes any value, and sim:0 holds tensors"):
        pipeline.chain([pipeline.Stage(abs, device="sim:0")])


def test_memory_has_its_limit(program: str) -> None:
    with pytest.raises(hr.UserError, match=r"sim:0 has 1KiB of memory, .* are in use, and .* more do not fit"):
        chain_on(program, ["sim:0(memory=1KiB)"])


def test_groups_and_replicas(program: str) -> None:
    stages = [pipeline.Stage(program, device="sim:0", group="g"), pipeline.Stage(program, group="g")]
    with pytest.raises(hr.UserError, match="group 'g' has stages on two devices"):
        pipeline.chain(stages)
    with pytest.raises(hr.UserError, match="2 replicas on sim:0, which runs one call at a time"):
        pipeline.chain([pipeline.Stage(program, device="sim:0", replicas=2)])
    with pytest.raises(hr.UserError, match="are one device with two sets of numbers"):
        chain_on(program, ["sim:0", "sim:0(speed=0.5)"])


def test_a_saved_pipeline_keeps_its_devices(program: str, x: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "pipe.so"
    with chain_on(program, [None, "sim:3(speed=0.5, link=1GB/s)"]) as pipe:
        pipe.save(path)
    assert _core.read_pipeline_plan(str(path)).devices == ["", "sim:3(speed=0.5, link=1GB/s)"]
    with pipeline.load(path) as pipe:
        assert any(name.endswith(" to sim:3") for name in stage_names(pipe))
        np.testing.assert_array_equal(pipe.submit(x).wait().numpy(), ((x + 1) * 2 + 1) * 2)


def test_a_parameter_of_a_device(tmp_path: Path) -> None:
    (tmp_path / "layers.relay").write_text(LAYERS)
    hr.compile(tmp_path / "layers.relay", threads=1, output=tmp_path / "layers.so")
    graph = pipeline.Graph()
    stage = graph.stage(str(tmp_path / "layers.so"), device="sim:0")
    graph.input("x").connect(stage.input("x"))
    graph.param("weights", "w").connect(stage.input("w"))
    stage.output().connect(graph.output("y"))
    given = np.full((64, 256), 0.5, np.float32)
    with graph.build() as pipe:
        for scale in (1.0, 2.0):
            pipe.set_params("weights", {"w": np.eye(256, dtype=np.float32) * scale})
            np.testing.assert_allclose(pipe.submit(given).wait().numpy(), np.tanh(given * scale) * scale, rtol=1e-5)


def test_a_slow_link_is_the_bottleneck(program: str, x: np.ndarray) -> None:
    """1 KiB at 512 KB/s and 3 ms take 5 ms in each direction."""
    count = 40
    with chain_on(program, ["sim:0(link=512KB/s, latency=3ms)"]) as pipe:
        begin = time.perf_counter()
        assert len(list(pipe.map([x] * count))) == count
        seconds = time.perf_counter() - begin
        metrics = pipe.metrics()
    assert seconds >= count * 5e-3
    assert "sim:0" in metrics["bottleneck"]
    busy = max(stage["busy"] for stage in metrics["stages"] if "sim:0" in stage["name"])
    assert busy >= 0.7 * seconds  # transfers end late on a busy machine, and the link still works all the time


def test_a_trace_has_the_transfers(program: str, x: np.ndarray, tmp_path: Path) -> None:
    with chain_on(program, ["sim:0(latency=1ms)"]) as pipe, pipe.trace(tmp_path / "trace.json"):
        list(pipe.map([x] * 5))
    text = (tmp_path / "trace.json").read_text()
    assert text.count('"x to sim:0"') >= 5


def test_split(tmp_path: Path) -> None:
    (tmp_path / "layers.relay").write_text(LAYERS)
    path = tmp_path / "pipe.so"
    device = pipeline.SimulatedDevice(1, speed=0.5, memory=4 << 20, link=5e8, latency=1e-4)
    report = pipeline.split(tmp_path / "layers.relay", path, stages=1, devices=[device], replans=1)
    text = "sim:1(speed=0.5, memory=4MiB, link=500MB/s, latency=100us)"
    assert [stage["device"] for stage in report["stages"]] == [text]
    with pipeline.load(path) as pipe:
        rng = np.random.default_rng(1)
        x, w = (rng.standard_normal((rows, 256), np.float32) / 16 for rows in (64, 256))
        result = pipe.submit({"x": x, "w": w}).wait().numpy()
    np.testing.assert_allclose(result, np.tanh(x @ w.T) @ w.T, atol=1e-5)
    with pytest.raises(hr.UserError, match="two stages are on sim:1"):
        pipeline.split(tmp_path / "layers.relay", path, devices=["sim:1", "sim:1"])
    with pytest.raises(hr.UserError, match="devices are given for 1 stages, and there are 2"):
        pipeline.split(tmp_path / "layers.relay", path, devices=["sim:1"])
    with pytest.raises(hr.UserError, match="replicas are for processors, and sim:1 is a simulated device"):
        pipeline.split(tmp_path / "layers.relay", path, devices=[None, "sim:1"], replicas=2)


def test_the_device_of_a_configuration() -> None:
    mods = [parse(PROGRAM) for _ in range(2)]
    config = PipelineConfig()
    config["input"]["x"].connect(config[mods[0]]["input"]["x"])
    config[mods[0]]["output"][0].connect(config[mods[1]]["input"]["x"])
    config[mods[1]]["output"][0].connect(config["output"][0])
    for mod in mods:
        config[mod].target = "llvm"
    config[mods[1]].dev = pipeline.SimulatedDevice(speed=0.5, latency=1e-4)
    module = PipelineModule(build(config))
    given = np.ones((4, WIDTH), np.float32)
    module.set_input("x", given)
    module.run()
    np.testing.assert_array_equal(module.get_output()[0].numpy(), ((given + 1) * 2 + 1) * 2)
    assert build(config).mods_config["module_connection"][1]["dev"] == "12,0"
