"""The Python package on models/digits.onnx: numpy and DLPack in and out, errors, sessions, the graph executor."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

MODELS = Path(__file__).parents[2] / "models"
DIGITS = MODELS / "digits.onnx"
ONE = {"x": (1, 1, 8, 8)}


@pytest.fixture(scope="module")
def labels():
    return np.load(MODELS / "digits_labels.npy")


@pytest.fixture(scope="module")
def expected(images):
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(str(DIGITS)).run(None, {"x": images})[0]


def test_compile_and_call(images, labels, expected):
    f = hr.compile(DIGITS, shapes={"x": images.shape}, threads=1)
    y = f(images)
    assert isinstance(y, hr.NDArray)
    assert y.shape == (360, 10)
    assert y.dtype == "float32"
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-5)
    assert (y.numpy().argmax(1) == labels).mean() >= 0.98
    np.testing.assert_array_equal(np.asarray(f(x=images)), y.numpy())


def test_results_do_not_depend_on_threads(images):
    one = hr.compile(DIGITS, shapes={"x": images.shape}, threads=1)(images)
    two = hr.compile(DIGITS, shapes={"x": images.shape}, threads=2)(images)
    np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_outputs_are_fresh_and_share_memory(images):
    f = hr.compile(DIGITS, shapes=ONE)
    first = f(images[:1])
    kept = first.numpy().copy()
    f(images[1:2])
    np.testing.assert_array_equal(first.numpy(), kept)
    view = np.from_dlpack(first)
    assert view.__array_interface__["data"] == first.numpy().__array_interface__["data"]
    assert first.__dlpack_device__() == (1, 0)


def test_inputs_of_any_layout(images):
    f = hr.compile(DIGITS, shapes=ONE)
    want = f(images[:1]).numpy()
    strided = np.asfortranarray(np.repeat(images[:1], 2, axis=3))[:, :, :, ::2]
    np.testing.assert_array_equal(f(strided).numpy(), want)
    np.testing.assert_array_equal(f(hr.nd.array(images[:1])).numpy(), want)


def test_artifact_round_trip(tmp_path, images):
    path = tmp_path / "digits.so"
    compiled = hr.compile(DIGITS, shapes=ONE, output=path)
    loaded = hr.load(path, threads=1)
    assert loaded.threads == 1
    (cpu, *_) = sorted(os.sched_getaffinity(0))
    pinned = hr.load(path, cpus=[cpu])
    assert pinned.threads == 1
    np.testing.assert_array_equal(pinned(images[:1]).numpy(), compiled(images[:1]).numpy())
    with pytest.raises(hr.UserError, match="processor 1048576 was asked for"):
        hr.load(path, cpus=[1 << 20])
    for wrong in (0, "0"):
        with pytest.raises(hr.UserError, match="cpus: expected a list of processors' numbers, got"):
            hr.load(path, cpus=wrong)
    with pytest.raises(hr.UserError, match=r"cpus\[0\]: expected an int"):
        hr.load(path, cpus=["0"])
    assert [spec.name for spec in loaded.inputs] == ["x"]
    assert loaded.inputs[0].shape == (1, 1, 8, 8)
    np.testing.assert_array_equal(loaded(images[:1]).numpy(), compiled(images[:1]).numpy())


def test_lists_and_numbers_get_the_dtype_of_the_input(tmp_path):
    text = (
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(2), float32], %i: Tensor[(2), uint8], %s: float16) {\n"
        '  (%x, %i, %s, cast(%i, dtype="float32") + %x)\n}\n'
    )
    (tmp_path / "m.relay").write_text(text)
    compiled = hr.compile(tmp_path / "m.relay")
    module = relay.parse(text)
    lib = relay.build(module, target="llvm")
    executor = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))

    def run(x, i, s):
        executor.run(x=x, i=i, s=s)
        return [executor.get_output(k) for k in range(4)]

    session = hr.InferenceSession(tmp_path / "m.relay")
    calls = [
        compiled,
        run,
        lambda x, i, s: session.run(None, {"x": x, "i": i, "s": s}),
        relay.create_executor("debug", mod=module).evaluate(),
        relay.create_executor("graph", mod=module).evaluate(),
    ]
    for call in calls:
        for x, i, s in (([0.5, 3], [7, 255], 0.25), ((1, 2), (0, 1), 2)):
            outputs = call(x, i, s)
            for k, given in enumerate((x, i, s, np.add(x, i))):
                out = outputs[k]
                np.testing.assert_array_equal(out.numpy() if hasattr(out, "numpy") else out, given)
        for wrong, dtype in (
            (([0.5, 1], [1, 256], 0), "int64"),  # past uint8
            (([0.5, 1], [1, -1], 0), "int64"),
            (([0.5, 1], [1.0, 2.0], 0), "float64"),
            (([1e300, 1], [1, 1], 0), "float64"),  # past float32
            (([True, False], [1, 1], 0), "bool"),
        ):
            with pytest.raises(hr.UserError, match=dtype):
                call(*wrong)
    # Arrays of numpy: Relay's executors cast them within a kind or to a wider one, sessions and compiled models do not.
    narrow = ((np.array([0.5, 3]), [1, 1], 0), ([0.5, 3], [1, 1], np.float64(0.25)))
    for call in (calls[0], calls[2]):
        for wrong in narrow:
            with pytest.raises(hr.UserError, match="float64"):
                call(*wrong)
    for call in (calls[1], *calls[3:]):
        assert [float(call(*given)[2 * k].numpy().flat[0]) for k, given in enumerate(narrow)] == [0.5, 0.25]
        with pytest.raises(hr.UserError, match="float64"):
            call([0.5, 1], np.ones(2), 0)


def test_what_compile_writes_is_opened(tmp_path):
    for name in ("digits.o", "digits.ll"):
        with pytest.raises(
            hr.UserError, match=rf"cannot write '.*{name}': .* which must be an artifact; .*export_library"
        ):
            hr.compile(DIGITS, shapes=ONE, output=tmp_path / name)
    with pytest.raises(hr.UserError, match="there is no format 'exe'"):
        hr.compile(DIGITS, shapes=ONE, output=tmp_path / "digits.exe")
    assert not list(tmp_path.iterdir())


def test_graph_executor(tmp_path, images, expected):
    path = tmp_path / "digits.so"
    hr.compile(DIGITS, shapes=ONE, output=path)
    lib = hr.runtime.load_module(str(path))
    m = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    m.set_input("x", images[:1])
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), expected[:1], atol=1e-5)
    m.run(x=images[1:2])
    out = np.zeros((1, 10), np.float32)
    m.get_output(0, hr.nd.from_dlpack(out))
    np.testing.assert_allclose(out, expected[1:2], atol=1e-5)
    assert m.get_num_inputs() == m.get_num_outputs() == 1
    assert m.get_input_index("x") == 0
    assert m.get_input_index("y") == -1
    shapes, dtypes = m.get_input_info()
    assert tuple(shapes["x"]) == (1, 1, 8, 8)
    assert dtypes == {"x": "float32"}


def test_inference_session(images, expected):
    session = hr.InferenceSession(DIGITS)
    assert [(arg.name, arg.shape, arg.type) for arg in session.get_inputs()] == [("x", ["n", 1, 8, 8], "tensor(float)")]
    assert session.get_outputs()[0].name == "probabilities"
    for n in (1, 3):
        (y,) = session.run(None, {"x": images[:n]})
        np.testing.assert_allclose(y, expected[:n], atol=1e-5)
    (y,) = session.run(["probabilities"], {"x": images[:3]})
    np.testing.assert_allclose(y, expected[:3], atol=1e-5)


def test_session_keeps_eight_compiles(images):
    session = hr.InferenceSession(DIGITS, opt_level=0)
    for n in range(1, 10):
        session.run(None, {"x": images[:n]})
    assert len(session._compiled) == 8
    with pytest.warns(
        RuntimeWarning, match="sets of shapes are compiled again, because the session keeps only 8"
    ) as told:
        for n in range(1, 10):
            session.run(None, {"x": images[:n]})
    assert len(told) == 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: hr.compile("missing.onnx"), "missing.onnx"),
        (lambda x: hr.compile(DIGITS), r"x\[0\] \(n\)"),
        (lambda x: hr.compile(DIGITS, shapes={"z": (1,)}), "'z'"),
        (lambda x: hr.compile(DIGITS, shapes=ONE, cpu="nonsense"), "nonsense"),
        (lambda x: hr.compile(DIGITS, shapes=ONE, target="lvm"), "no kind of target 'lvm'"),
        (lambda x: hr.compile(DIGITS, shapes=ONE, target="llvm", cpu="x86-64"), "give one of the two"),
        (lambda x: hr.InferenceSession(DIGITS, target="llvm -mtriple=riscv64-linux-gnu"), "for the triple"),
        (lambda x: hr.compile(DIGITS, shapes=ONE, opt_level=-7), "opt_level is -7"),
        (lambda x: hr.compile(DIGITS, shapes=ONE, threads=-1), "number of threads is -1"),
        (lambda x: hr.compile(DIGITS, shapes=ONE)(), "takes 1 inputs"),
        (lambda x: hr.compile(DIGITS, shapes=ONE)(x[:2]), "shape"),
        (lambda x: hr.compile(DIGITS, shapes=ONE)(x[:1].astype(np.float64)), "float32"),
        (lambda x: hr.compile(DIGITS, shapes=ONE)(y=x[:1]), "unknown"),
        (lambda x: hr.compile(DIGITS, shapes=ONE)(np.array(["text"])), "DLPack"),
        (lambda x: hr.load(DIGITS), "artifact"),
        (lambda x: hr.InferenceSession(DIGITS).run(None, {}), "missing: x"),
        (lambda x: hr.InferenceSession(DIGITS).run(["y"], {"x": x[:1]}), "no output 'y'"),
        (lambda x: hr.InferenceSession(DIGITS, shapes={"q": (1,)}), "no input q"),
    ],
)
def test_errors_say_what_is_wrong(images, call, says):
    with pytest.raises(hr.UserError, match=says) as caught:
        call(images)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("keyword", "says"),
    [
        ("shape", r"compile\(\) got an unexpected keyword argument 'shape'; did you mean shapes=\?"),
        ("dim", r"'dim'; did you mean dims=\?"),
        ("frob", "'frob'; it takes model, shapes, dims, bound, "),
    ],
)
def test_an_unknown_keyword_of_compile_names_the_near_one(keyword, says):
    with pytest.raises(TypeError, match=says):
        hr.compile(DIGITS, **{keyword: {"x": (1, 1, 8, 8)}})


def test_a_missing_code_generator_is_an_error_of_its_own(tmp_path):
    maps = Path("/proc/self/maps").read_text()
    for library in set(re.findall(r"/\S+/libheadrace(?:_rt)?\.so$", maps, re.MULTILINE)):
        (tmp_path / Path(library).name).symlink_to(library)
    script = f"""
import headrace as hr
try:
    hr.compile({str(DIGITS)!r}, shapes={ONE!r})
except hr.MissingError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"the native code generator is missing: {tmp_path}/libheadrace_llvm.so" in done.stdout
    assert issubclass(hr.MissingError, hr.UserError)


def test_read_only_inputs_are_read_in_place(images):
    frozen = images[:1].copy()
    frozen.flags.writeable = False
    f = hr.compile(DIGITS, shapes=ONE)
    np.testing.assert_array_equal(f(frozen).numpy(), f(images[:1]).numpy())


def test_two_threads_compile_and_run(images, expected):
    results = [None, None]

    def work(i):
        f = hr.compile(DIGITS, shapes=ONE)
        results[i] = f(images[i : i + 1]).numpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2):
        np.testing.assert_allclose(results[i], expected[i : i + 1], atol=1e-5)


def test_peer_process(tmp_path, images, expected):
    pytest.importorskip("onnxruntime")
    np.save(tmp_path / "input_0.npy", images[:1])
    (tmp_path / "inputs.json").write_text('{"names": ["x"]}')
    done = subprocess.run(
        [sys.executable, "-m", "headrace.peer", "onnxruntime", str(DIGITS), "--folder", str(tmp_path)],
        input="save\ntime\n",
        capture_output=True,
        text=True,
        check=True,
    )
    ready, saved, seconds = done.stdout.splitlines()
    assert ready.startswith("ready ")
    assert saved == "saved 1"
    assert float(seconds) > 0
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), expected[:1], atol=1e-5)


def test_weights_beside_the_artifact(images, tmp_path):
    writer = os.environ.get("HEADRACE_WRITE_SPLIT_ARTIFACT")
    if not writer:
        pytest.skip("HEADRACE_WRITE_SPLIT_ARTIFACT names no program")
    path = tmp_path / "split.so"
    subprocess.run([writer, DIGITS, path], check=True, timeout=60)
    expected = hr.compile(DIGITS, shapes=ONE)(images[:1]).numpy()
    np.testing.assert_array_equal(hr.load(path)(images[:1]).numpy(), expected)
    m = hr.graph_executor.GraphModule(hr.runtime.load_module(path)["default"](hr.cpu(0)))
    m.run(x=images[:1])
    np.testing.assert_array_equal(m.get_output(0).numpy(), expected)
    (tmp_path / "split.so.safetensors").rename(tmp_path / "moved")
    with pytest.raises(hr.UserError, match="holds the artifact's weights and must lie beside it"):
        hr.load(path)
