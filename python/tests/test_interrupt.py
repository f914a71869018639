"""Ctrl-C while a model is compiled, or interpreted."""

import signal
from pathlib import Path

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
