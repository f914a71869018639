"""Ctrl-C while a model is compiled, interpreted, or waits for a region with a time limit."""

import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
ONE = {"x": (1, 1, 8, 8)}


@pytest.fixture
def interrupted():
    """KeyboardInterrupt after 10 ms of the process's own time, which no compile does with."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def test_a_compile_ends(interrupted, tmp_path):
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        hr.compile(DIGITS, shapes=ONE, output=tmp_path / "never.so")
    assert list(tmp_path.iterdir()) == []
    assert len(hr.compile(DIGITS, shapes=ONE, opt_level=0).outputs) == 1


def test_a_build_ends(interrupted):
    x = hr.relay.var("x", shape=(1, 8))
    y = x
    for _ in range(300):
        y = hr.relay.tanh(hr.relay.multiply(y, x))
    module = hr.IRModule.from_expr(y)
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        hr.relay.build(module, "llvm")


def test_an_interpreted_run_ends(interrupted):
    module = hr.relay.parse(
        """#[version = "0.0.5"]
        def @fib(%n: int64) -> int64 {
          if (less(%n, 2i64)) { %n } else { add(@fib(subtract(%n, 1i64)), @fib(subtract(%n, 2i64))) }
        }
        def @main() { @fib(22i64) }
        """
    )
    run = hr.relay.create_executor("debug", mod=module).evaluate()
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        run()


@pytest.fixture
def alarm():
    """KeyboardInterrupt after 200 ms."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("fallback", ["native", "none"])
def test_a_region_that_hangs_ends_with_its_time_limit_or_an_interrupt(alarm, tmp_path, fallback):
    may_return = threading.Event()

    class Hangs(hr.backend.Backend):
        name = f"test_hangs_{fallback}"

        def supports(self, call):
            return call.op.name == "exp" or "it takes exp alone"

        def compile(self, regions, options):
            return [b"" for _ in regions]

        def load(self, data):
            return lambda name, inputs, outputs: may_return.wait() and None

    hr.backend.register(Hangs())
    path = tmp_path / "exp.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { exp(%x) }\n')
    hr.compile(path, backends=[Hangs.name], output=tmp_path / "exp.so")
    model = hr.load(tmp_path / "exp.so", fallback=fallback, region_timeout=600)
    x = np.zeros(4, "float32")
    alarm()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model(x)
    assert time.monotonic() - begin < 60
    # The thread is left to itself; the model goes on without it.
    sentence = "did not return before a run was interrupted, and is not called again"
    if fallback == "native":
        np.testing.assert_array_equal(model(x).numpy(), np.ones(4))
        assert sentence in model.fallbacks[0]["message"]
    else:
        with pytest.raises(hr.UserError, match=sentence):
            model(x)
    may_return.set()
