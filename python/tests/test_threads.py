"""One model, session or graph executor, used from several threads."""

import concurrent.futures
import threading
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace import session as session_module  # noqa: E402
from size_kit import IS_FEW  # noqa: E402

MODELS = Path(__file__).parents[2] / "models"
DIGITS = MODELS / "digits.onnx"
THREADS = 3
RUNS = 100


@pytest.fixture(scope="module")
def one():
    return hr.compile(DIGITS, shapes={"x": (1, 1, 8, 8)})


@pytest.fixture(scope="module")
def expected(images, one):
    return np.concatenate([one(images[i : i + 1]).numpy() for i in range(THREADS)])


def in_threads(work):
    """Runs work(0), work(1) ... at once; what one raises is raised here."""
    errors = []
    start = threading.Barrier(THREADS)

    def guarded(i):
        try:
            start.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_one_compiled_model(images, one, expected):
    def work(i):
        for _ in range(RUNS):
            np.testing.assert_array_equal(one(images[i : i + 1]).numpy()[0], expected[i])

    in_threads(work)


def test_one_session_compiles_each_shape_once(images):
    session = hr.InferenceSession(DIGITS, opt_level=0)
    want = session.run(None, {"x": images[:4]})[0]

    def work(i):
        for n in (1, 2, 3, 2, 1) * (2 if IS_FEW else 10):
            (y,) = session.run(None, {"x": images[i : i + n]})
            np.testing.assert_allclose(y, session.run(None, {"x": images[i : i + n]})[0])
            np.testing.assert_allclose(y[0], want[i], atol=1e-5)

    in_threads(work)
    assert len(session._compiled) == 4


FEEDS = {n: {"x": np.zeros((n, 1, 8, 8), np.float32)} for n in (1, 2)}
PATIENCE = 60  # seconds until a test that hangs fails


class Stage:
    """Compiles of a session that begin, and go on when they are let; who waits for one is told by `waits`."""

    def __init__(self, monkeypatch):
        self.begun, self.let, self.waits = threading.Event(), threading.Event(), threading.Event()
        self.compiled = []  # the numbers of images
        self.held = 1  # so many of these compiles begin and wait
        self.error = None  # the error of the first compile that is held
        stage = self

        class Told(concurrent.futures.Future):
            def result(self, timeout=None):
                stage.waits.set()
                return super().result(timeout)

        def compile_later(*args, shapes, **kwargs):
            stage.compiled.append(shapes["x"][0])
            if shapes["x"][0] == stage.held:
                stage.begun.set()
                assert stage.let.wait(PATIENCE)
                error, stage.error = stage.error, None
                if error is not None:
                    raise error
            return hr.compile(*args, shapes=shapes, **kwargs)

        monkeypatch.setattr(session_module, "Future", Told)
        monkeypatch.setattr(session_module, "compile", compile_later)
        self.session = hr.InferenceSession(DIGITS, opt_level=0)

    def run(self, n):
        """A thread that runs `n` images, and what it gives or raises."""
        outcome = concurrent.futures.Future()

        def work():
            try:
                outcome.set_result(self.session.run(None, FEEDS[n])[0].shape)
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return outcome

    def run_twice(self):
        """Two threads with the shape that is held; the second waits for the first, which may then go on."""
        first = self.run(self.held)
        assert self.begun.wait(PATIENCE)
        second = self.run(self.held)
        assert self.waits.wait(PATIENCE)
        self.let.set()
        return first, second


def test_a_session_runs_other_shapes_while_it_compiles_one(monkeypatch):
    stage = Stage(monkeypatch)
    first = stage.run(1)
    assert stage.begun.wait(PATIENCE)
    for _ in range(2):  # compiled, then kept
        assert stage.run(2).result(PATIENCE) == (2, 10)
    assert not first.done()
    stage.let.set()
    assert first.result(PATIENCE) == (1, 10)
    assert stage.compiled == [1, 2]


def test_a_session_compiles_once_what_two_threads_ask_for(monkeypatch):
    stage = Stage(monkeypatch)
    for outcome in stage.run_twice():
        assert outcome.result(PATIENCE) == (1, 10)
    assert stage.compiled == [1]


def test_an_error_of_a_sessions_compile_reaches_all_who_wait_and_is_not_kept(monkeypatch):
    stage = Stage(monkeypatch)
    stage.error = hr.UserError("no luck")
    for outcome in stage.run_twice():
        with pytest.raises(hr.UserError, match="no luck"):
            outcome.result(PATIENCE)
    assert stage.compiled == [1]
    assert stage.run(1).result(PATIENCE) == (1, 10)


def test_an_interrupt_reaches_only_the_thread_that_compiles(monkeypatch):
    stage = Stage(monkeypatch)
    stage.error = KeyboardInterrupt()
    first, second = stage.run_twice()
    with pytest.raises(KeyboardInterrupt):
        first.result(PATIENCE)
    assert second.result(PATIENCE) == (1, 10)
    assert stage.compiled == [1, 1]


def test_one_graph_executor_survives(tmp_path, images, expected):
    path = tmp_path / "digits.so"
    hr.compile(DIGITS, shapes={"x": (1, 1, 8, 8)}, output=path)
    m = hr.graph_executor.GraphModule(hr.runtime.load_module(str(path))["default"](hr.cpu()))

    def work(i):
        for _ in range(RUNS):
            m.set_input_zero_copy("x", images[i : i + 1].copy())
            m.run()
            assert m.get_output(0).shape == (1, 10)

    in_threads(work)
    m.run(x=images[:1])
    np.testing.assert_array_equal(m.get_output(0).numpy()[0], expected[0])


def test_a_module_grows_while_others_read_it():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    is_grown = threading.Event()

    def grow():
        try:
            for i in range(300):
                v = relay.var("v", shape=(2,))
                mod[f"f{i}"] = relay.Function([v], relay.exp(v))
                mod["f0"] = relay.Function([v], relay.tanh(v))
        finally:
            is_grown.set()

    def infer():
        while not is_grown.is_set():
            typed = relay.transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant()])(mod)
            # A module that was typed is given back, and may have grown since.
            assert typed.same_as(mod) or all(f.checked_type is not None for f in typed.functions.values())

    def read():
        while not is_grown.is_set():
            assert "@main" in str(mod)
            hr.ir.structural_hash(mod)
            assert "main" in hr.ir.load_json(hr.ir.save_json(mod))
            assert mod["main"].same_as(mod.copy()["main"])

    works = [grow, infer, read]
    in_threads(lambda i: works[i]())
    assert len(mod.functions) == 301


def untyped_module():
    x = relay.var("x", shape=(2,))
    y = x
    for _ in range(50):
        y = relay.tanh(relay.add(relay.nn.relu(y), y))
    return hr.IRModule.from_expr(relay.Function([x], y))


def types_by_threads(mod):
    types = [None] * THREADS

    def work(i):
        types[i] = str(relay.transform.InferType()(mod)["main"].checked_type)

    in_threads(work)
    return types


def test_threads_infer_one_untyped_module_at_once():
    for _ in range(20):
        assert types_by_threads(untyped_module()) == ["fn (Tensor[(2), float32]) -> Tensor[(2), float32]"] * THREADS


def test_threads_build_one_untyped_module_at_once():
    mod = untyped_module()
    data = np.array([0.25, -1], "float32")
    want = data
    for _ in range(50):
        want = np.tanh(np.maximum(want, 0) + want)
    results = [None] * THREADS

    def work(i):
        m = hr.graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](hr.cpu()))
        m.run(x=data)
        results[i] = m.get_output(0).numpy()

    in_threads(work)
    for result in results:  # 50 steps add up what tanh is off by in float32
        np.testing.assert_allclose(result, want, rtol=1e-4)


def test_a_pass_that_adds_to_its_module_gives_what_it_added():
    @hr.transform.module_pass(opt_level=0)
    def add(mod, ctx):
        mod["g"] = mod["main"]
        return mod

    x = relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    assert "g" in add(mod)
