"""Options of sessions and runs, and lists of providers, by onnxruntime's names."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pytest.importorskip("onnx")
from headrace import session as hs  # noqa: E402
from session_kit import B, TensorProto, W, X, helper, model_of, onnx, scaled  # noqa: E402

CPU = "CPUExecutionProvider"


def with_options(**values):
    options = hr.SessionOptions()
    for name, value in values.items():
        setattr(options, name, value)
    return options


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_attributes_and_defaults_are_onnxruntimes(name):
    ort = pytest.importorskip("onnxruntime")
    ours, theirs = getattr(hr, name)(), getattr(ort, name)()
    for attribute in ours._defaults:
        mine, other = getattr(ours, attribute), getattr(theirs, attribute)
        if attribute == "profile_file_prefix":
            continue  # each names itself
        assert (int(mine) == int(other)) if hasattr(mine, "name") else mine == other, attribute


@pytest.mark.parametrize("name", ["GraphOptimizationLevel", "ExecutionMode"])
def test_enumerations_are_onnxruntimes(name):
    ort = pytest.importorskip("onnxruntime")
    ours = {member.name: int(member) for member in getattr(hr, name)}
    assert ours == {key: int(value) for key, value in getattr(ort, name).__members__.items()}


@pytest.mark.parametrize("options", [hr.SessionOptions(), hr.RunOptions()])
def test_unknown_attributes(options):
    with pytest.raises(AttributeError, match=r"has no attribute 'threads'; it has .*log_severity_level"):
        options.threads = 1
    with pytest.raises(AttributeError, match="threads"):
        _ = options.threads


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("intra_op_num_threads", "two", "expected an int, got str"),
        ("intra_op_num_threads", True, "expected an int, got bool"),
        ("graph_optimization_level", 1, "expected a GraphOptimizationLevel, got int"),
        ("execution_mode", "ORT_PARALLEL", "expected a ExecutionMode, got str"),
        ("enable_profiling", "yes", "expected a bool, got str"),
        ("logid", 3, "expected a str, got int"),
    ],
)
def test_values_of_another_type(name, value, says):
    with pytest.raises(TypeError, match=f"SessionOptions.{name}: {says}"):
        with_options(**{name: value})


def test_options_show_what_was_changed():
    assert repr(with_options(intra_op_num_threads=2, logid="me")) == (
        "SessionOptions(intra_op_num_threads=2, logid='me')"
    )


def test_threads():
    for options, more in ((with_options(intra_op_num_threads=2), {}), (with_options(), {"threads": 2})):
        session = hr.InferenceSession(scaled(3), options, **more)
        assert [model.threads for model in session._compiled.values()] == [2]
        assert session.get_session_options() is options
    with pytest.raises(hr.UserError, match="number of threads is -1"):
        hr.InferenceSession(scaled(), with_options(intra_op_num_threads=-1))


@pytest.mark.parametrize("level", list(hr.GraphOptimizationLevel))
def test_levels_change_no_result(level):
    session = hr.InferenceSession(scaled(), with_options(graph_optimization_level=level))
    np.testing.assert_array_equal(session.run(["Z"], {"X": X})[0], X * W + B)
    expected = {"ORT_DISABLE_ALL": 0, "ORT_ENABLE_BASIC": 1, "ORT_ENABLE_EXTENDED": 2}.get(level.name, 3)
    assert session._options["opt_level"] == expected
    assert hr.InferenceSession(scaled(), session.get_session_options(), opt_level=1)._options["opt_level"] == 1


def test_options_without_a_meaning_here_are_accepted():
    options = with_options(
        enable_cpu_mem_arena=False,
        enable_mem_pattern=False,
        execution_mode=hr.ExecutionMode.ORT_PARALLEL,
        inter_op_num_threads=2,
        log_severity_level=1,
        logid="test",
        use_deterministic_compute=True,
    )
    options.add_session_config_entry("session.use_env_allocators", "1")
    run = hr.RunOptions()
    run.logid = "run"
    run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    np.testing.assert_array_equal(hr.InferenceSession(scaled(), options).run(["Y"], {"X": X}, run)[0], X * W)
    assert options.get_session_config_entry("session.use_env_allocators") == "1"
    assert run.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


def test_entries_that_are_not_there():
    with pytest.raises(RuntimeError, match="SessionOptions does not have configuration with key: key"):
        hr.SessionOptions().get_session_config_entry("key")
    with pytest.raises(RuntimeError, match="RunOptions does not have configuration with key: key"):
        hr.RunOptions().get_run_config_entry("key")


def test_what_sessions_cannot_do_is_refused():
    with pytest.raises(hs.SessionError, match="optimized_model_filepath: sessions write no ONNX models"):
        hr.InferenceSession(scaled(), with_options(optimized_model_filepath="x.onnx"))
    with pytest.raises(hs.SessionError, match=r"'lib\.so': libraries of onnxruntime's custom ops do not run here"):
        hr.SessionOptions().register_custom_ops_library("lib.so")


def test_a_run_that_is_to_end():
    session = hr.InferenceSession(scaled())
    options = hr.RunOptions()
    options.terminate = True
    with pytest.raises(RuntimeError, match="terminate is set"):
        session.run(None, {"X": X}, options)
    options.terminate = False
    session.run(None, {"X": X}, options)


def test_initializers_of_the_options():
    ort = pytest.importorskip("onnxruntime")
    results = []
    for package in (hr, ort):
        options = package.SessionOptions()
        kept = package.OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32))
        options.add_initializer("W", kept)
        results.append(package.InferenceSession(scaled().SerializeToString(), options).run(["Z"], {"X": X})[0])
    np.testing.assert_array_equal(*results)


def test_initializers_whose_file_is_not_there(tmp_path):
    onnx.save_model(scaled(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    options = hr.SessionOptions()
    options.add_external_initializers(["W", "B"], [hr.OrtValue.ortvalue_from_numpy(a) for a in (W, B)])
    session = hr.InferenceSession(tmp_path / "m.onnx", options)
    np.testing.assert_array_equal(session.run(["Z"], {"X": X})[0], X * W + B)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("Q", W, "has no initialiser 'Q'"),
        ("W", np.ones(3, np.float32), r"initialiser 'W': expected tensor\(float\) of shape \[2\], got .* \[3\]"),
        ("W", np.ones(2), r"initialiser 'W': expected tensor\(float\) .* got tensor\(double\)"),
    ],
)
def test_initializers_that_do_not_fit(name, value, says):
    options = hr.SessionOptions()
    options.add_initializer(name, hr.OrtValue.ortvalue_from_numpy(value))
    with pytest.raises(hs.SessionError, match=says):
        hr.InferenceSession(scaled(), options)


def test_initializers_of_damaged_models():
    options = hr.SessionOptions()
    options.add_initializer("W", hr.OrtValue.ortvalue_from_numpy(W))
    data = scaled().SerializeToString()
    with pytest.raises(hr.UserError, match=r"malformed ONNX data: field 7 reaches past the end") as raised:
        hr.InferenceSession(data[: len(data) // 2], options)
    assert "/proc/" not in f"{raised.value} {raised.value.place}"


def test_initializers_are_ortvalues():
    options = hr.SessionOptions()
    with pytest.raises(hs.SessionError, match="initialiser 'W': expected an OrtValue, got ndarray"):
        options.add_initializer("W", W)
    with pytest.raises(hs.SessionError, match="names and values differ in length: 1 and 0"):
        options.add_external_initializers(["W"], [])


def test_sizes_of_free_dimensions():
    ort = pytest.importorskip("onnxruntime")
    model = model_of(
        [helper.make_node("Abs", ["X"], ["Y"])],
        [("X", TensorProto.FLOAT, ["rows", "columns", 5])],
        [("Y", TensorProto.FLOAT, ["rows", "columns", 5])],
    )
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].denotation, dims[1].denotation = "DATA_BATCH", "DATA_CHANNEL"
    data = model.SerializeToString()
    for given in (
        [("name", "rows", 3), ("name", "columns", 4)],
        [("name", "rows", 3)],
        [("denotation", "DATA_CHANNEL", 4)],
    ):
        shapes = []
        for package in (hr, ort):
            options = package.SessionOptions()
            for by, key, size in given:
                getattr(options, f"add_free_dimension_override_by_{by}")(key, size)
            session = package.InferenceSession(data, options)
            shapes.append(session.get_inputs()[0].shape)
            x = np.full((3, 4, 5), -2, np.float32)
            np.testing.assert_array_equal(session.run(None, {"X": x})[0], -x)
        assert shapes[0] == shapes[1]
    with pytest.raises(hs.SessionError, match=r"input 'X': expected shape \['rows', 4, 5\], got"):
        options = hr.SessionOptions()
        options.add_free_dimension_override_by_name("columns", 4)
        hr.InferenceSession(data, options).run(None, {"X": np.ones((3, 3, 5), np.float32)})


def test_a_profile(tmp_path):
    options = with_options(enable_profiling=True, profile_file_prefix=str(tmp_path / "profile"))
    session = hr.InferenceSession(scaled(), options)
    session.run(None, {"X": X})
    assert session.get_profiling_start_time_ns() > 0
    written = session.end_profiling()
    text = Path(written).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    events = json.loads(text)
    of_session = [event["name"] for event in events if event["cat"] == "Session"]
    assert of_session == ["session_initialization", "compile", "model_run"]
    for event in events:
        assert {"pid", "dur", "ts", "ph", "name", "args"} <= event.keys()
        assert event["ph"] == "X"
    assert session.end_profiling() == ""


def test_a_profile_has_the_steps_of_each_run(tmp_path):
    """The names are those of the model's nodes. At level 0 each operator is a step, as in onnxruntime."""
    ort = pytest.importorskip("onnxruntime")
    model = model_of(
        [helper.make_node("Exp", ["X"], ["Y"], name="first"), helper.make_node("Neg", ["Y"], ["Z"], name="last")],
        [("X", TensorProto.FLOAT, [3, 2])],
        [("Z", TensorProto.FLOAT, [3, 2])],
    ).SerializeToString()
    names = []
    for package, more in ((hr, {"opt_level": 0}), (ort, {"providers": [CPU]})):
        options = package.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / package.__name__)
        session = package.InferenceSession(model, options, **more)
        for _ in range(2):
            session.run(None, {"X": X})
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        steps = [event for event in events if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
        names.append([event["name"] for event in steps])
        assert {event["args"]["provider"] for event in steps} == {CPU}
        assert [event["args"]["node_index"] for event in steps] in (["0", "1"] * 2, ["1", "2"] * 2, ["1", "0"] * 2)
        if package is hr:
            assert [event["args"]["op_name"] for event in steps] == ["exp", "negative"] * 2
            runs = [event for event in events if event["name"] == "model_run"]
            for i, step in enumerate(steps):
                run = runs[i // 2]
                assert run["ts"] <= step["ts"]
                assert step["ts"] + step["dur"] <= run["ts"] + run["dur"] + 1  # they are whole microseconds
    assert names[0] == names[1] == ["first_kernel_time", "last_kernel_time"] * 2


def test_a_profile_ends_at_a_million_events(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace._session_profile._MOST_EVENTS", 6)
    options = with_options(enable_profiling=True, profile_file_prefix=str(tmp_path / "long"))
    session = hr.InferenceSession(scaled(), options)
    for _ in range(20):
        session.run(None, {"X": X})
    assert 6 <= len(json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))) < 12


def test_profiles_start_in_order_and_only_if_asked_for(tmp_path):
    options = with_options(enable_profiling=True, profile_file_prefix=str(tmp_path / "p"))
    starts = [hr.InferenceSession(scaled(), options).get_profiling_start_time_ns() for _ in range(3)]
    assert starts == sorted(starts)
    plain = hr.InferenceSession(scaled())
    assert (plain.end_profiling(), plain.get_profiling_start_time_ns()) == ("", 0)


@pytest.mark.parametrize(
    "providers",
    [None, [], [CPU], (CPU,), [(CPU, {"option": 1})], [CPU, (CPU, {})], ["CUDAExecutionProvider", CPU], ["NoSuch"]],
)
def test_providers(providers):
    ort = pytest.importorskip("onnxruntime")
    told = []
    for package in (hr, ort):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            session = package.InferenceSession(scaled().SerializeToString(), providers=providers)
        warns = any("rovider '" in str(one.message) or "rs: '" in str(one.message) for one in warned)
        told.append((session.get_providers(), session.get_provider_options(), warns))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("providers", "options", "says"),
    [
        (3, None, "providers: expected a list, got int"),
        ([3], None, "providers: expected names, or pairs of a name and a dict, got 3"),
        ([CPU], 3, "provider_options: expected a list of dicts, got int"),
        ([CPU], ["no dict"], "provider_options: expected a list of dicts"),
        ([CPU, CPU], [{}], "differ in length: 2 and 1"),
        ([(CPU, {})], [{}], "not both"),
    ],
)
def test_providers_that_are_none(providers, options, says):
    with pytest.raises(ValueError, match=says):
        hr.InferenceSession(scaled(), None, providers, options)


def test_providers_of_a_session_that_exists():
    session = hr.InferenceSession(scaled())
    session.set_providers([CPU])
    session.set_providers([(CPU, {"x": 1})])
    session.set_providers()
    session.disable_fallback()
    session.enable_fallback()
    assert session.get_providers() == [CPU]
    with pytest.raises(RuntimeError, match="Unknown Provider Type: NoSuch"):
        session.set_providers(["NoSuch"])


def test_what_there_is():
    assert hr.get_available_providers() == hs.get_all_providers() == [CPU]
    assert hs.get_device() == "CPU"


def test_onnxruntimes_options_are_not_ours():
    ort = pytest.importorskip("onnxruntime")
    with pytest.raises(hs.SessionError, match=r"sess_options: .*onnxruntime's do not apply here"):
        hr.InferenceSession(scaled(), ort.SessionOptions())
