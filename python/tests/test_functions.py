"""Functions in both directions: the registry, callbacks, errors, threads."""

import base64
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402


def test_registered_functions_are_found_by_name():
    @hr.register_func("test.add_one")
    def add_one(x):
        return x + 1

    found = hr.get_global_func("test.add_one")
    assert isinstance(found, hr.PackedFunc)
    assert found(2) == 3
    assert add_one(2) == 3
    assert "test.add_one" in hr.list_global_func_names()
    with pytest.raises(hr.UserError, match=r"'test.add_one' is registered already"):
        hr.register_func("test.add_one", lambda x: x)
    hr.register_func("test.add_one", lambda x: x + 2, override=True)
    assert hr.get_global_func("test.add_one")(2) == 4


def test_a_missing_function_is_named():
    with pytest.raises(hr.UserError, match=r"there is no global function 'test\.missing'"):
        hr.get_global_func("test.missing")
    assert hr.get_global_func("test.missing", allow_missing=True) is None


# A name of these bytes comes from a model file; Python's own text holds no such thing.
NO_TEXT = b"caf\xe9"


def node_of_no_text():
    name = f'{{"text": "{base64.b64encode(NO_TEXT).decode()}"}}'
    nodes = f'["relay.GlobalVar", {{"name_hint": {name}}}]'
    return hr.ir.load_json(f'{{"headrace": "object graph", "version": 1, "root": [0], "nodes": [{nodes}]}}')


def test_messages_quote_bytes_that_are_no_text():
    mod = hr.IRModule()
    x = relay.var("x", shape=(2,))
    var = node_of_no_text()
    assert repr(var) == r'relay.GlobalVar(name_hint="caf\xe9")'
    mod[var] = relay.Function([x], x)
    with pytest.raises(hr.UserError) as raised:
        mod.get_global_var("other")
    assert str(raised.value).endswith(r"it has: @caf\xe9")


def test_names_that_are_no_text_are_told():
    for call in (hr.get_global_func, lambda name: hr.register_func(name, len)):
        with pytest.raises(hr.UserError, match=r"'caf\\udce9' is not text in UTF-8"):
            call(NO_TEXT.decode(errors="surrogateescape"))


def test_an_exception_keeps_what_it_says_on_its_way():
    def fail():
        raise KeyError("caf\udce9")

    hr.register_func("test.fail_in_no_text", fail)
    with pytest.raises(KeyError) as raised:
        hr.get_global_func("test.fail_in_no_text")()
    assert raised.value.args == ("caf\udce9",)


def test_passes_are_functions():
    mod = hr.IRModule.from_expr(relay.add(relay.const(1.0), relay.const(2.0)))
    fold = hr.get_global_func("relay._transform.FoldConstant")({})
    folded = fold(mod)["main"].body
    assert isinstance(folded, relay.Constant)
    assert folded.data.numpy() == 3.0


def test_callbacks_nest():
    apply = hr.convert(lambda f, x: f(f(x)))
    assert apply(lambda x: x * 3, 2) == 18
    outer = hr.convert(lambda f: hr.convert(lambda x: f(x) + 1))
    assert outer(hr.convert(lambda x: x * 2))(5) == 11


def test_many_arguments():
    total = hr.convert(lambda *args: sum(args))
    assert total() == 0
    assert total(*range(100)) == 4950


class MyError(Exception):
    pass


def fails_deep_down(x):
    raise MyError(f"no {x}")


def test_exceptions_keep_their_type_and_both_tracebacks():
    f = hr.convert(fails_deep_down)

    def calls():
        return f(7)

    with pytest.raises(MyError, match="no 7") as caught:
        calls()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names.index("calls") < names.index("fails_deep_down")


def test_exceptions_pass_through_two_languages():
    inner = hr.convert(fails_deep_down)
    outer = hr.convert(lambda x: inner(x))
    with pytest.raises(MyError) as caught:
        hr.convert(lambda x: outer(x))(1)
    assert any(frame.name == "fails_deep_down" for frame in traceback.extract_tb(caught.value.__traceback__))


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [SilentError(), ValueError("\udc80")])
def test_exceptions_that_cannot_say_what_they_are(error):
    def fails():
        raise error

    with pytest.raises(type(error)) as caught:
        hr.convert(lambda: hr.convert(fails)())()
    assert caught.value is error


def test_an_error_in_a_pass_is_the_users_own():
    @hr.transform.module_pass(opt_level=0)
    def breaks(mod, ctx):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        breaks(hr.IRModule())


def test_wrong_arguments_are_named():
    with pytest.raises(hr.UserError, match="argument 0: expected str, got int 3"):
        hr.get_global_func("ir.GetOp")(3)
    with pytest.raises(hr.UserError, match="expected 1 arguments, got 2"):
        hr.get_global_func("ir.GetOp")("add", 1)


def test_tensors_cross_without_a_copy():
    seen = []

    def keep(array):
        seen.append(array)
        return array

    data = np.arange(4.0, dtype="float32")
    back = hr.convert(keep)(data)
    data[0] = 42
    assert back.numpy()[0] == 42
    assert seen[0].numpy()[0] == 42


def test_the_gil_is_released_in_long_calls():
    x = relay.var("x", shape=(128, 128))
    body = x
    for _ in range(40):
        body = relay.nn.dense(body, x)
    mod = hr.IRModule.from_expr(body)
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    relay.create_executor("debug", mod).evaluate()(np.zeros((128, 128), "float32"))
    end = time.perf_counter()
    stop.set()
    thread.join()
    during = [t for t in ticks if begin < t < end]
    assert end - begin > 0.02, "too short to say anything"
    assert len(during) >= (end - begin) / 0.001 / 20


def test_functions_of_other_threads():
    results = []
    f = hr.convert(lambda x: x + 1)

    def work():
        results.append(f(threading.get_ident()) - threading.get_ident())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 4


def test_the_benchmark_of_calls_runs():
    script = Path(__file__).parents[2] / "bench" / "calls.py"
    command = [sys.executable, str(script), "--rounds", "1", "--calls", "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Python -> C++ " in done.stdout
    assert "headrace" in done.stdout
