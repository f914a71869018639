"""Running pipelines by the names that users of TVM know."""

import json
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import pipeline_executor, relay  # noqa: E402
from headrace._compat.pipeline import running  # noqa: E402
from pipeline_kit import (  # noqa: E402
    SHAPE,
    Graph,
    connect_three,
    const,
    data,
    module,
    resident_bytes,
    stand_in,
    three_modules,
    three_results,
)


@pytest.fixture(autouse=True, params=["headrace", "stand-in"])
def runtime(request, monkeypatch):
    """Headrace's own runtime, and the one that stands in for it, which holds results back when it is asked to."""
    needs_stand_in = request.node.get_closest_marker("stand_in") is not None
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "headrace.pipeline", stand_in())
    elif needs_stand_in:
        pytest.skip("looks into the runtime that stands in")
    return request.param


@pytest.fixture
def cfg():
    return pipeline_executor.PipelineConfig()


def started(cfg):
    return pipeline_executor.PipelineModule(pipeline_executor.build(cfg))


@pytest.fixture
def three(cfg):
    """Three modules with residual edges, running."""
    return started(connect_three(cfg, *three_modules()))


def set_both(pipeline, a, b):
    pipeline.set_input("data_a", a)
    pipeline.set_input("data_b", b)


def assert_outputs(outputs, expected):
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        assert isinstance(output, hr.NDArray)
        np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-6)  # a few float32 roundings


def test_three_modules_with_residual_edges_and_targets_of_their_own(cfg):
    first, second, third = three_modules()
    connect_three(cfg, first, second, third)
    for mod, target in ((first, "llvm"), (second, hr.Target("llvm -mcpu=x86-64-v2")), (third, None)):
        cfg[mod].target = target
        cfg[mod].dev = hr.cpu(0)
        cfg[mod].cpu_affinity = "0"
    assert pipeline_executor.pipeline_executor_enabled()
    with hr.transform.PassContext(opt_level=3):
        factory = pipeline_executor.build(cfg)
    pipeline = pipeline_executor.create(factory)
    assert (pipeline.num_inputs, pipeline.num_outputs, pipeline.num_executing_pipeline) == (2, 2, 0)
    assert pipeline.get_input_pipeline_map("data_a") == ["1", "data_0"]
    assert pipeline.get_input_pipeline_map("data_b") == ["2", "data_1"]
    rounds = [(data(i), data(10 * i)) for i in range(5)]
    for i, (a, b) in enumerate(rounds, 1):
        set_both(pipeline, a, hr.nd.array(b))
        assert pipeline.get_input("data_a").numpy().tolist() == a.tolist()
        assert pipeline.run() is not None
        assert pipeline.num_executing_pipeline == i
    for a, b in rounds:
        assert_outputs(pipeline.get_output(), three_results(a, b))
        assert pipeline.num_executing_pipeline == 5
    assert pipeline.get_output(synchronize=False) == []
    for graph in Graph.made:  # graphs that the stand-in for the runtime made
        stages = [(stage.name, stage.device, stage.cpus) for stage in graph.stages]
        assert stages == [(f"mod{i}", hr.cpu(0), [0]) for i in (1, 2, 3)]


def test_outputs_come_by_their_numbers(cfg):
    many = module("x", lambda x: tuple(x + const(i) for i in range(12)))
    cfg["input"]["d"].connect(cfg[many]["input"]["x"])
    for i in reversed(range(12)):
        cfg[many]["output"][i].connect(cfg["output"][11 - i])
    pipeline = started(cfg)
    pipeline.set_input("d", data())
    pipeline.run()
    assert_outputs(pipeline.get_output(), [data() + 11 - i for i in range(12)])


def test_a_run_takes_its_inputs(three):
    set_both(three, data(), data())
    three.run()
    with pytest.raises(RuntimeError, match="run: no value for pipeline input data_a, data_b; set_input gives it"):
        three.run()
    three.set_input("data_b", data(4))
    with pytest.raises(RuntimeError, match="no value for pipeline input data_a; set_input"):
        three.run()
    assert three.num_executing_pipeline == 1
    three.set_input("data_a", data(2))
    three.run()
    assert_outputs(three.get_output(), three_results(data(), data()))
    assert_outputs(three.get_output(), three_results(data(2), data(4)))


def test_set_input_copies(three):
    a, b = data(), data(1)
    set_both(three, a, b)
    a[:] = -1
    three.run()
    b[:] = -1
    assert_outputs(three.get_output(), three_results(data(), data(1)))


def test_set_input_casts_arrays_of_numpy(three):
    set_both(three, data().astype("float64"), data().astype("int32").tolist())
    three.run()
    assert_outputs(three.get_output(), three_results(data(), data()))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nope", np.ones(SHAPE), "Cannot find nope in binding list input: the pipeline has data_a, data_b"),
        ("data_0", np.ones(SHAPE), "Cannot find data_0 in binding list input"),
        (
            "data_a",
            np.ones((2, 3), "float32"),
            "pipeline input data_a: expected Tensor[(3, 3), float32], got Tensor[(2, ",
        ),
        ("data_a", np.ones((3,), "float32"), "got Tensor[(3), float32]"),
        ("data_a", hr.nd.array(np.ones(SHAPE, "int32")), "got Tensor[(3, 3), int32]"),
        ("data_a", np.ones(SHAPE, "complex64"), "pipeline input data_a: "),
        ("data_a", None, "pipeline input data_a: None is not a tensor"),
        ("data_a", "text", "pipeline input data_a: "),
    ],
)
def test_a_wrong_input_is_refused_at_once(three, name, value, message):
    three.set_input("data_a", data(5))
    with pytest.raises(RuntimeError) as caught:
        three.set_input(name, value)
    assert message in str(caught.value)
    assert str(caught.value).count("pipeline input") <= 1
    assert isinstance(caught.value, hr.UserError)
    assert three.get_input("data_a").numpy().tolist() == data(5).tolist()


def test_what_is_asked_for_and_not_there(three):
    refusals = [
        (lambda: three.get_input("data_b"), "pipeline input data_b has no value for the next run; set_input gives it"),
        (lambda: three.get_input("nope"), "Cannot find nope in binding list input"),
        (lambda: three.get_input_pipeline_map("nope"), "Cannot find nope in binding list input"),
        (
            lambda: three.get_params_group_pipeline_map("nope"),
            "there is no parameter group nope; the pipeline has none",
        ),
        (lambda: three.set_params("nope", {"x": data()}), "there is no parameter group nope"),
        (lambda: three.get_output(timeout=-1), "get_output: timeout: expected seconds"),
        (lambda: pipeline_executor.PipelineModule("x"), r"PipelineModule: expected what build\(cfg\) gives, got str"),
    ]
    for call, message in refusals:
        with pytest.raises(RuntimeError, match=message) as caught:
            call()
        assert isinstance(caught.value, hr.UserError)


def test_an_input_that_feeds_several_modules(cfg):
    add = module("x y", lambda x, y: x + y)
    double = module("x", lambda x: x + x)
    cfg["input"]["d"].connect(cfg[double]["input"]["x"])
    cfg["input"]["d"].connect(cfg[add]["input"]["x"])
    cfg[double]["output"][0].connect(cfg[add]["input"]["y"])
    cfg[add]["output"][0].connect(cfg["output"][0])
    pipeline = started(cfg)
    assert (pipeline.num_inputs, pipeline.num_outputs) == (1, 1)
    assert pipeline.get_input_pipeline_map("d") == ["1", "x", "2", "x"]
    pipeline.set_input("d", data())
    pipeline.run()
    assert_outputs(pipeline.get_output(), [3 * data()])


def test_one_module_as_two_stages(cfg):
    add = module("x y", lambda x, y: x + y * const(2))
    second = cfg.stage(add, "second")
    for i, name in enumerate("xy"):
        cfg["input"][str(i)].connect(cfg[add]["input"][name])
        cfg[add]["output"][0].connect(second["input"][name])
    second["output"][0].connect(cfg["output"][0])
    pipeline = started(cfg)
    pipeline.set_input(0, data())
    pipeline.set_input("1", data(1))
    pipeline.run()
    assert_outputs(pipeline.get_output(), [3 * (data() + 2 * data(1))])


def test_a_stage_may_be_any_callable(cfg):
    double = module("x", lambda x: x + x)
    cfg["input"]["d"].connect(cfg[double]["input"]["x"])
    cfg[double]["output"][0].connect(cfg["output"][0])
    cfg[double].build_func = lambda *args, **kwargs: lambda x: np.asarray(x) * 7
    pipeline = started(cfg)
    pipeline.set_input("d", data())
    pipeline.run()
    assert_outputs(pipeline.get_output(), [7 * data()])


# --- parameter groups


def with_group(cfg, params, connects_x=True, **settings):
    scale = module("x w b", lambda x, w, b: x * w + b)
    if connects_x:
        cfg["input"]["d"].connect(cfg[scale]["input"]["x"])
    cfg["param_group"]["group"].connect(cfg[scale]["param"])
    cfg[scale]["output"][0].connect(cfg["output"][0])
    cfg[scale].params = params
    for name, value in settings.items():
        setattr(cfg[scale], name, value)
    return started(cfg)


def result(pipeline, x):
    pipeline.set_input("d", x)
    pipeline.run()
    return pipeline.get_output()


def test_parameters_of_a_group_are_set_for_the_runs_after(cfg):
    pipeline = with_group(cfg, {"w": data(1), "b": data(2)})
    assert pipeline.get_params_group_pipeline_map("group") == 1
    assert pipeline.num_inputs == 1
    assert_outputs(result(pipeline, data()), [data() * data(1) + data(2)])
    pipeline.set_input("d", data())
    pipeline.run()  # has the values before the next line
    pipeline.set_params("group", {"w": hr.nd.array(data(5))})
    assert_outputs(result(pipeline, data()), [data() * data(1) + data(2)])
    assert_outputs(pipeline.get_output(), [data() * data(5) + data(2)])


def test_two_groups_of_one_module_set_its_parameters(cfg):
    mod = module("x w", relay.multiply)
    cfg["input"]["d"].connect(cfg[mod]["input"]["x"])
    for name in ("g", "h"):
        cfg["param_group"][name].connect(cfg[mod]["param"])
    cfg[mod]["output"][0].connect(cfg["output"]["0"])
    pipeline = started(cfg)
    for factor, name in ((1, "g"), (2, "h"), (3, "g")):
        pipeline.set_params(name, {"w": data(factor)})
        assert_outputs(result(pipeline, data(4)), [data(4) * data(factor)])


def test_a_group_may_give_all_values(cfg):
    pipeline = with_group(cfg, None)
    pipeline.set_input("d", data())
    with pytest.raises(RuntimeError, match="run: parameter w of mod1 has no value; set_params gives it"):
        pipeline.run()
    pipeline.set_params("group", {"b": data(1), "w": data(2)})
    pipeline.run()  # the input was not taken by the run that failed
    assert_outputs(pipeline.get_output(), [data() * data(2) + data(1)])


def test_wrong_parameters_are_refused_and_none_is_set(cfg):
    pipeline = with_group(cfg, {"w": data(1), "b": data(2)})
    wrong = [
        ("group", None, "set_params: params_data is empty; give tensors for the group group"),
        ("group", {}, "params_data is empty"),
        ("group", [1], "set_params: params_data: expected a dict, got list"),
        ("other", {"w": data()}, "there is no parameter group other; the pipeline has group"),
        ("group", {"w": data(), "x": data()}, "parameter x of mod1 cannot be set; those of the group group are w, b"),
        ("group", {"w": data(), "v": data()}, "parameter v of mod1 cannot be set"),
        ("group", {"w": data(), "b": data()[0]}, "parameter b of the group group: expected Tensor[(3, 3), float32]"),
    ]
    for group, values, message in wrong:
        with pytest.raises(RuntimeError) as caught:
            pipeline.set_params(group, values)
        assert message in str(caught.value)
        assert isinstance(caught.value, hr.UserError)
    assert_outputs(result(pipeline, data()), [data() * data(1) + data(2)])


def test_parameters_that_a_build_func_bound_are_constants(cfg):
    pipeline = with_group(cfg, {"w": data(1)}, build_func=relay.build)
    with pytest.raises(RuntimeError, match="parameter w of mod1 cannot be set; those of the group group are b"):
        pipeline.set_params("group", {"w": data()})
    pipeline.set_params("group", {"b": data(3)})
    assert_outputs(result(pipeline, data()), [data() * data(1) + data(3)])


def test_an_input_that_only_a_group_can_give(cfg):
    pipeline = with_group(cfg, {"w": data(1), "b": data(2)}, connects_x=False)
    assert pipeline.num_inputs == 0
    pipeline.set_params("group", {"x": data(4)})
    pipeline.run()
    assert_outputs(pipeline.get_output(), [data(4) * data(1) + data(2)])


@pytest.mark.stand_in
def test_parameters_without_a_group_are_constants(cfg):
    scale = module("x w", lambda x, w: x * w)
    cfg["input"]["d"].connect(cfg[scale]["input"]["x"])
    cfg[scale]["output"][0].connect(cfg["output"][0])
    cfg[scale].params = {"w": data(1)}
    pipeline = started(cfg)
    assert Graph.made[0].inputs.keys() == {"d"}
    assert_outputs(result(pipeline, data()), [data() * data(1)])


# --- the order of runs, waiting, errors


def fill(pipeline, runs=16):
    for i in range(runs):
        set_both(pipeline, data(i), data())
        pipeline.run()


@pytest.fixture
def idle_thread():
    """A thread that takes no outputs."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_a_lone_thread_hears_at_once_that_it_must_take_outputs(three, monkeypatch):
    monkeypatch.setattr(running, "_FIRST_READER", 60)
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread()])  # those of other tests may live
    fill(three)
    set_both(three, data(16), data())
    begin = time.monotonic()
    with pytest.raises(pipeline_executor.PipelineExecutorError, match="outputs that were not taken"):
        three.run()
    assert time.monotonic() - begin < 30


def test_a_run_waits_a_while_for_a_thread_that_may_take_outputs(three, monkeypatch, idle_thread):
    monkeypatch.setattr(running, "_FIRST_READER", 0.4)
    fill(three)
    set_both(three, data(16), data())
    begin = time.monotonic()
    with pytest.raises(pipeline_executor.PipelineExecutorError, match="outputs that were not taken"):
        three.run()
    assert time.monotonic() - begin >= 0.4


def test_a_run_without_a_place_names_the_remedy(three, monkeypatch):
    monkeypatch.setattr(running, "_FIRST_READER", 0.05)
    fill(three)
    set_both(three, data(16), data())
    remedy = "16 runs have outputs that were not taken, which is the most; call get_output"
    with pytest.raises(pipeline_executor.PipelineExecutorError, match=remedy):
        three.run()
    assert three.num_executing_pipeline == 16
    for i in range(17):  # its inputs are set still
        assert_outputs(three.get_output(timeout=5), three_results(data(i), data()))
        if i == 0:
            three.run()
    fill(three)
    set_both(three, data(16), data())
    begin = time.monotonic()
    monkeypatch.setattr(running, "_FIRST_READER", 60)
    with pytest.raises(pipeline_executor.PipelineExecutorError, match=remedy):
        three.run()  # at once: this thread is the only one that takes outputs
    assert time.monotonic() - begin < 30


def test_a_run_waits_for_a_thread_that_takes_outputs(three):
    taken, begun = [], threading.Event()

    def take():
        for _ in range(40):
            taken.append(three.get_output(timeout=60))
            begun.set()
            time.sleep(0.002)

    reader = threading.Thread(target=take)
    reader.start()
    fill(three, 1)
    assert begun.wait(10)
    fill(three, 39)  # more than there are places
    reader.join()
    for i, outputs in enumerate(taken[1:]):
        assert_outputs(outputs, three_results(data(i), data()))
    fill(three, 1)
    assert_outputs(three.get_output(timeout=5), three_results(data(), data()))


def test_a_run_waits_no_longer_than_its_timeout(three):
    fill(three)
    set_both(three, data(16), data())
    with pytest.raises(TimeoutError, match="16 runs have outputs that were not taken"):
        three.run(timeout=0.02)
    with pytest.raises(pipeline_executor.PipelineExecutorError, match="run: timeout"):
        three.run(timeout="long")
    assert_outputs(three.get_output(timeout=5), three_results(data(), data()))
    three.run(timeout=0.02)
    assert three.num_executing_pipeline == 17


def test_runs_whose_outputs_nobody_takes_do_not_use_memory(cfg, runtime, monkeypatch):
    if runtime == "stand-in":
        pytest.skip("the runtime that stands in has no memory of its own")
    monkeypatch.setattr(running, "_FIRST_READER", 0.0)
    large = module("x", lambda x: x + const(1), shape=(256, 1024))  # 1 MiB
    cfg["input"]["d"].connect(cfg[large]["input"]["x"])
    cfg[large]["output"][0].connect(cfg["output"][0])
    pipeline = started(cfg)
    value, refused, before = np.zeros((256, 1024), "float32"), 0, 0
    for i in range(200):
        pipeline.set_input("d", value)
        try:
            pipeline.run()
        except pipeline_executor.PipelineExecutorError:
            refused += 1
        if i == 40:
            before = resident_bytes()
    assert refused == 200 - 16
    assert resident_bytes() - before < 8 << 20


@pytest.mark.stand_in
def test_an_output_that_is_not_there_yet(three):
    with pytest.raises(TimeoutError, match="no run has a result yet"):
        three.get_output(timeout=0.01)
    set_both(three, data(), data())
    three.run()
    Graph.made[0].is_held = True
    assert three.get_output(synchronize=False) == []
    assert three.get_output(False) == []
    with pytest.raises(TimeoutError):
        three.get_output(True, 0.01)
    Graph.made[0].is_held = False
    assert_outputs(three.get_output(synchronize=True, sleep_interval=0.1), three_results(data(), data()))
    assert three.get_output(False) == []


@pytest.mark.parametrize("wrong", [0, 1, "yes"])
def test_the_number_of_an_output_is_not_an_argument(three, wrong):
    set_both(three, data(), data())
    three.run()
    message = re.escape(f"get_output: synchronize: expected True or False, got {wrong!r}; get_output()[N] is output N")
    with pytest.raises(pipeline_executor.PipelineExecutorError, match=message):
        three.get_output(wrong)
    assert_outputs(three.get_output(timeout=5), three_results(data(), data()))


def test_an_output_may_be_waited_for_before_its_run(three):
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(three.get_output(timeout=60)))
    waiter.start()
    time.sleep(0.05)
    set_both(three, data(), data())
    three.run()
    waiter.join()
    assert_outputs(taken[0], three_results(data(), data()))


def test_a_factory_starts_anew_after_a_stop(cfg):
    factory = pipeline_executor.build(connect_three(cfg, *three_modules()))
    for _ in range(2):
        running = pipeline_executor.PipelineModule(factory)
        set_both(running, data(), data())
        running.run()
        assert_outputs(running.get_output(timeout=10), three_results(data(), data()))
        running.stop()


def test_a_thread_that_waits_for_outputs_hears_of_the_end(three, runtime):
    raised = []

    def read():
        try:
            while True:
                three.get_output()
        except RuntimeError as error:
            raised.append(error)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    fill(three, 3)
    while three.module._runs:
        time.sleep(0.01)
    three.stop()
    for reader in readers:
        reader.join(10)
    assert [str(error) for error in raised] == ["get_output: the pipeline is stopped, and no outputs are left"] * 2
    if runtime == "headrace":
        assert {type(error).__name__ for error in raised} == {"PipelineStopped"}
    with pytest.raises(RuntimeError, match="the pipeline is stopped, and no outputs are left"):
        three.get_output(synchronize=False)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (0, "get_output: no run was started, and no other thread"),
        (2, "get_output: the outputs of every run were taken"),
    ],
)
def test_a_lone_thread_hears_that_no_run_is_left(three, monkeypatch, runs, message):
    raised = []

    def read():
        fill(three, runs)
        for _ in range(runs):
            three.get_output()
        with pytest.raises(pipeline_executor.PipelineExecutorError, match=message) as caught:
            three.get_output()
        raised.append(caught.value)

    monkeypatch.setattr(running, "_LONE_READER", 0.2)
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread()])  # those of other tests may live
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(10)
    assert len(raised) == 1
    fill(three, 1)
    assert len(three.get_output()) == 2


def test_threads_share_a_pipeline(cfg):
    double = module("x", lambda x: x + x)
    cfg["input"]["d"].connect(cfg[double]["input"]["x"])
    cfg[double]["output"][0].connect(cfg["output"][0])
    pipeline = started(cfg)
    taken = []
    consumer = threading.Thread(target=lambda: taken.extend(pipeline.get_output(timeout=60) for _ in range(50)))
    consumer.start()
    for i in range(50):
        pipeline.set_input("d", data(i))
        pipeline.run()
    consumer.join()
    for i, outputs in enumerate(taken):
        assert_outputs(outputs, [2 * data(i)])
    assert len(taken) == 50


def test_a_run_that_fails_keeps_its_place(cfg):
    double = module("x", lambda x: x + x)
    cfg["input"]["d"].connect(cfg[double]["input"]["x"])
    cfg[double]["output"][0].connect(cfg["output"][0])

    def run(x):
        if np.asarray(x)[0, 0] % 3 == 1:
            raise ValueError(f"bad {np.asarray(x)[0, 0]}")
        return x

    cfg[double].build_func = lambda *args, **kwargs: run
    pipeline = started(cfg)
    for i in range(15):
        pipeline.set_input("d", data(i))
        pipeline.run()
    for i in range(15):
        if i % 3 == 1:
            with pytest.raises(ValueError, match=f"bad {i}"):
                pipeline.get_output()
        else:
            assert_outputs(pipeline.get_output(), [data(i)])


@pytest.mark.stand_in
def test_a_request_that_the_runtime_refuses_leaves_its_inputs(three, monkeypatch):
    set_both(three, data(), data())

    def refuse(self, inputs):
        raise hr.UserError("full")

    with monkeypatch.context() as patch:
        patch.setattr(Graph, "submit", refuse)
        with pytest.raises(hr.UserError, match="full"):
            three.run()
    assert three.num_executing_pipeline == 0
    three.run()
    assert_outputs(three.get_output(), three_results(data(), data()))


@pytest.mark.stand_in
def test_modules_of_one_factory_share_the_pipeline(cfg):
    factory = pipeline_executor.build(connect_three(cfg, *three_modules()))
    one, other = pipeline_executor.PipelineModule(factory), pipeline_executor.PipelineModule(factory)
    third = pipeline_executor.PipelineModule(one.module)
    set_both(one, data(), data())
    other.run()
    assert_outputs(third.get_output(), three_results(data(), data()))
    assert len(Graph.made) == 1
    other.stop()
    assert Graph.made[0].is_stopped


# --- files


def test_files_that_are_no_pipeline_are_refused(tmp_path):
    of_tvm = tmp_path / "config"
    of_tvm.write_text(json.dumps({"load_config": "load_config", "pipeline_config": "pipeline_config"}))
    for path, message in [
        (tmp_path / "nowhere", "load_library: '.*nowhere' cannot be read: No such file"),
        (of_tvm, "is a configuration of TVM's export_library, which is not read; build the pipeline"),
        (3, "load_library: config_file_name: expected a path"),
        (tmp_path / "a.onnx", "load_library: '.*a.onnx' is a model; build a pipeline .*export_library"),
    ]:
        with pytest.raises(RuntimeError, match=message) as caught:
            pipeline_executor.PipelineModule.load_library(path)
        assert isinstance(caught.value, hr.UserError)


def saved(cfg, folder, runtime):
    """The path of the pipeline's file, which is moved after it was written."""
    if runtime == "stand-in":
        pytest.skip("the runtime that stands in writes no files")
    written = pipeline_executor.build(cfg).export_library(folder)
    moved = folder / "elsewhere"
    Path(written).rename(moved)
    return moved


def test_a_saved_pipeline_gives_the_same_results(cfg, runtime, tmp_path):
    """Three modules with residual edges: built, exported, moved, loaded, five frames."""
    path = saved(connect_three(cfg, *three_modules()), tmp_path, runtime)
    loaded = pipeline_executor.PipelineModule.load_library(path)
    assert (loaded.num_inputs, loaded.num_outputs) == (2, len(three_results(data(), data())))
    frames = [(data(i), data(10 * i)) for i in range(5)]
    for a, b in frames:
        set_both(loaded, a, b)
        loaded.run()
    for a, b in frames:
        assert_outputs(loaded.get_output(), three_results(a, b))
    assert loaded.num_executing_pipeline == 5


def test_a_saved_pipeline_describes_itself_as_the_built_one(cfg, runtime, tmp_path):
    path = saved(connect_three(cfg, *three_modules()), tmp_path, runtime)
    built, loaded = started(cfg), pipeline_executor.PipelineModule.load_library(path)
    for name in ("data_a", "data_b"):
        assert loaded.get_input_pipeline_map(name) == built.get_input_pipeline_map(name)
    with pytest.raises(RuntimeError, match="Cannot find nope in binding list input"):
        loaded.set_input("nope", data())
    with pytest.raises(RuntimeError, match=r"pipeline input data_a: expected Tensor\[\(3, 3\), float32\], got"):
        loaded.set_input("data_a", np.zeros((2, 3), "float32"))
    with pytest.raises(RuntimeError, match="run: no value for pipeline input"):
        loaded.run()


def test_a_saved_pipeline_has_the_first_values_of_its_parameters(cfg, runtime, tmp_path):
    mod = module("x w", relay.multiply)
    cfg["input"]["data"].connect(cfg[mod]["input"]["x"])
    cfg["param_group"]["scales"].connect(cfg[mod]["param"])
    cfg[mod]["output"][0].connect(cfg["output"]["0"])
    cfg[mod].params = {"w": data(1)}
    loaded = pipeline_executor.PipelineModule.load_library(saved(cfg, tmp_path, runtime))
    assert loaded.get_params_group_pipeline_map("scales") == 1
    loaded.set_input("data", data(2))
    loaded.run()
    assert_outputs(loaded.get_output(), [data(1) * data(2)])
    loaded.set_params("scales", {"w": data(5)})
    loaded.set_input("data", data(2))
    loaded.run()
    assert_outputs(loaded.get_output(), [data(5) * data(2)])
    with pytest.raises(RuntimeError, match="there is no parameter group other; the pipeline has scales"):
        loaded.set_params("other", {"w": data()})


def test_a_file_of_the_other_api_has_its_parameters(runtime, tmp_path):
    """Parameters have their own names, and a group may feed several stages."""
    if runtime == "stand-in":
        pytest.skip("the runtime that stands in writes no files")
    graph = hr.pipeline.Graph()
    codes = [relay.build(module("x w", relay.multiply)) for _ in range(2)]
    first, second = (graph.stage(code, name=name) for code, name in zip(codes, ("first", "second"), strict=True))
    graph.input("x").connect(first.input("x"))
    first.output().connect(second.input("x"))
    graph.param("scales", "p", data(1)).connect(first.input("w"))
    graph.param("scales", "q").connect(second.input("w"))
    second.output().connect(graph.output("y"))
    graph.save(tmp_path / "p.so")
    loaded = pipeline_executor.PipelineModule.load_library(tmp_path / "p.so")
    loaded.set_input("x", data(2))
    with pytest.raises(RuntimeError, match="parameter q of mod1 has no value"):
        loaded.run()
    loaded.set_params("scales", {"q": data(3)})
    loaded.run()
    assert_outputs(loaded.get_output(), [data(2) * data(1) * data(3)])


def test_a_damaged_file_is_refused(cfg, runtime, tmp_path):
    path = saved(connect_three(cfg, *three_modules()), tmp_path, runtime)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=r"load_library: '.*' is damaged: its checksum does not match"):
        pipeline_executor.PipelineModule.load_library(path)


def test_what_is_not_written_leaves_no_file(cfg, runtime, tmp_path):
    if runtime == "stand-in":
        pytest.skip("the runtime that stands in writes no files")
    factory = pipeline_executor.build(connect_three(cfg, *three_modules()))
    for folder, message in [(tmp_path / "nowhere", "there is no folder"), (3, "directory_path: expected a path")]:
        with pytest.raises(RuntimeError, match=f"export_library: {message}"):
            factory.export_library(folder)
    (tmp_path / "pipeline.so").mkdir()
    with pytest.raises(RuntimeError, match=r"export_library: .*pipeline\.so"):
        hr.contrib.pipeline_executor_build.export_library(factory, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["pipeline.so"]
