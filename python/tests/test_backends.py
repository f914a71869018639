"""Backends beside the native one: functions of Python that compile regions, and what happens when they fail."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import headrace as hr
import numpy as np
import pytest

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { negative(exp(add(%x, 1f))) }
"""


def module_of(kind: str, name: str, run) -> hr.runtime.Module:
    return hr.runtime.create_module(kind, {name: run}, name.encode())


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.relay"
    path.write_text(PROGRAM)
    return path


def register(kind: str, run) -> None:
    """A backend that takes exp and computes it by `run`."""
    hr.ir.register_op_attr("exp", f"target.{kind}", lambda call: True)
    hr.register_func(
        f"relay.ext.{kind}", lambda function: module_of(kind, function.attrs["global_symbol"], run), override=True
    )
    hr.register_func(
        f"runtime.module.loadbinary_{kind}", lambda data: module_of(kind, data.decode(), run), override=True
    )


def test_a_backend_of_python_computes_its_ops(program):
    seen = []

    def run(x, y):
        seen.append(x.shape)
        y[:] = np.exp(x.numpy())

    register("test_python_exp", run)
    model = hr.compile(program, backends=["test_python_exp"])
    got = model(np.zeros(4, "float32")).numpy()
    np.testing.assert_allclose(got, -np.exp(np.ones(4)), rtol=1e-6)
    assert seen == [(4,)]
    assert model.fallbacks == []


def test_a_backend_that_fails_is_replaced_by_native_code(program, tmp_path):
    calls = []

    def run(x, y):
        calls.append(1)
        raise RuntimeError("the chip is gone")

    register("test_python_fails", run)
    path = tmp_path / "model.so"
    hr.compile(program, backends=["test_python_fails"], output=path)
    model = hr.load(path)
    for _ in range(3):
        np.testing.assert_allclose(model(np.zeros(4, "float32")).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    assert len(calls) == 1
    (event,) = model.fallbacks
    assert event["backend"] == "test_python_fails"
    assert list(event) == ["region", "backend", "reason", "reason_name", "message", "run"]
    assert (event["reason"], event["reason_name"]) == (17, "BACKEND_FAILED")
    assert event["run"] == 1
    assert "the chip is gone" in event["message"]
    strict = hr.load(path, fallback="none")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the chip is gone") as raised:
            strict(np.zeros(4, "float32"))
        assert str(raised.value) == "the chip is gone"
    if sys.version_info >= (3, 11):
        assert raised.value.__notes__ == [
            "the backend 'test_python_fails' failed in the region 'tvmgen_default_test_python_fails_main_0': "
            "RuntimeError: the chip is gone; with the fallback 'native', native code computes the region"
        ]
    with pytest.raises(hr.UserError, match="expected 'native' or 'none', got 'maybe'"):
        hr.load(path, fallback="maybe")


def test_a_backend_that_does_not_return_is_replaced_after_its_time(program, tmp_path):
    may_return, calls = threading.Event(), []

    def run(x, y):
        calls.append(1)
        assert may_return.wait(60)

    register("test_python_hangs", run)
    path = tmp_path / "model.so"
    hr.compile(program, backends=["test_python_hangs"], output=path)
    model = hr.load(path, region_timeout=0.2)
    for _ in range(2):
        np.testing.assert_allclose(model(np.zeros(4, "float32")).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    assert len(calls) == 1
    (event,) = model.fallbacks
    assert event["message"] == "the backend's code did not return within 0.2 s, and is not called again"
    may_return.set()
    for wrong in (-1, float("inf"), float("nan"), 10**400, "soon", True):
        with pytest.raises(hr.UserError, match="region_timeout: expected seconds, 0 to 1000000, got"):
            hr.load(path, region_timeout=wrong)


@pytest.mark.backends("ccompiler")
def test_the_c_compiler_is_a_backend(program):
    model = hr.compile(program, backends=["ccompiler"], backend_options={"ccompiler": {"cc": "cc"}})
    np.testing.assert_allclose(model(np.zeros(4, "float32")).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    with pytest.raises(hr.UserError, match="has no option 'gc'"):
        hr.compile(program, backends=["ccompiler"], backend_options={"ccompiler": {"gc": 1}})


@pytest.mark.backends("examplejson", "ccompiler")
def test_what_is_given_twice(program, tmp_path):
    names = ("examplejson", "examplejsoncompiler")
    twice = {name: {"speed": 1} for name in names}
    with pytest.raises(hr.UserError, match=r"'speed' of the backend 'examplejson' is given twice, under .*compiler'"):
        hr.compile(program, backends=["examplejson"], backend_options=twice)
    files = []
    for backends in (["examplejson", "ccompiler"], ["examplejson", "ccompiler", *names, "ccompiler"]):
        files.append(tmp_path / f"{len(backends)}.so")
        hr.compile(program, backends=backends, output=files[-1])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_costs_choose_the_backend(tmp_path):
    path = tmp_path / "large.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(512, 512), float32]) { exp(%x) }\n')
    calls = []

    def run(x, y):
        calls.append(x.shape)
        y[:] = np.exp(x.numpy())

    register("test_python_cost", run)
    x = np.zeros((512, 512), "float32")
    for seconds, expected in ((0.0, 1), (1.0, 0)):
        hr.register_func("relay.ext.test_python_cost.cost", lambda call, cost=seconds: cost, override=True)
        calls.clear()
        model = hr.compile(path, backends=["test_python_cost"], placement="cost")
        np.testing.assert_array_equal(model(x).numpy(), np.ones((512, 512), "float32"))
        assert len(calls) == expected
    hr.register_func("relay.ext.test_python_cost.cost", lambda call: "cheap", override=True)
    with pytest.raises(hr.UserError, match=r"relay.ext.test_python_cost.cost gave a? ?str\w*, expected a float"):
        hr.compile(path, backends=["test_python_cost"], placement="cost")
    with pytest.raises(hr.UserError, match="placement is 'luck'; it must be 'order' or 'cost'"):
        hr.compile(path, backends=["test_python_cost"], placement="luck")


@pytest.mark.backends("ccompiler")
def test_costs_come_from_a_file(program, tmp_path):
    costs = tmp_path / "costs.json"
    costs.write_text('{"headrace_costs": 1, "cpu": "none", "threads": 1, "costs": []}')
    with pytest.raises(hr.UserError, match=r"costs\.json: the costs are of 1 thread on none"):
        hr.compile(program, backends=["ccompiler"], placement="cost", costs=costs)
    with pytest.raises(hr.UserError, match=r"missing\.json"):
        hr.compile(program, backends=["ccompiler"], placement="cost", costs=tmp_path / "missing.json")
    with pytest.raises(hr.UserError, match=r"costs\.json' have no effect without placement by cost"):
        hr.compile(program, backends=["ccompiler"], costs=costs)
    with pytest.raises(hr.UserError, match=r"the plan '.*plan\.json' says where ops go, and so does placement by cost"):
        hr.compile(program, backends=["ccompiler"], placement="cost", plan=tmp_path / "plan.json")


@pytest.mark.backends("ccompiler")
def test_a_plan_says_where_ops_go(program, tmp_path):
    headrace = Path(hr.__file__).parents[2] / "bin/headrace"
    if not headrace.exists():
        pytest.skip("the program headrace, which saves plans, was not built beside the package")
    path = tmp_path / "plan.json"
    command = [headrace, "explain", program, "--backends", "ccompiler", "--place", "*=native", "--save-plan", path]
    subprocess.run(command, check=True, capture_output=True)
    text = path.read_text()
    path.write_text(text.replace('"kind": "exp", "backend": "native"', '"kind": "exp", "backend": "ccompiler"'))
    model = hr.compile(program, plan=path, output=tmp_path / "model.so")
    np.testing.assert_allclose(model(np.zeros(4, "float32")).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    inspected = subprocess.run(
        [headrace, "inspect", tmp_path / "model.so", "--json"], check=True, capture_output=True, text=True
    )
    rows = json.loads(inspected.stdout)["programs"][0]["placement"]
    assert [row["backend"] for row in rows] == ["native", "ccompiler", "native"]


@pytest.mark.backends("ccompiler")
def test_a_wrong_plan_is_an_error(program, tmp_path):
    path = tmp_path / "plan.json"
    plan = {
        "headrace": "plan",
        "version": 1,
        "model": {"hash": "0" * 32, "inputs": []},
        "backends": [{"name": "ccompiler", "version": "1"}],
        "ops": [],
    }
    path.write_text(json.dumps(plan))
    with pytest.raises(hr.UserError, match=r"plan\.json:1:.*the plan is for another model"):
        hr.compile(program, plan=path)
    path.write_text("{")
    with pytest.raises(hr.UserError, match=r"plan\.json:1:2: the text ends where a key should be"):
        hr.compile(program, plan=path)
    with pytest.raises(hr.UserError, match="plan: expected a path"):
        hr.compile(program, plan=3)


@pytest.mark.backends("ccompiler")
def test_an_unknown_backend_is_an_error(program):
    with pytest.raises(hr.UserError, match="there is no backend 'nobody'; there are ccompiler"):
        hr.compile(program, backends=["nobody"])


def test_an_interrupt_of_a_backend_is_no_reason_to_go_on(program):
    def run(x, y):
        raise KeyboardInterrupt

    register("test_python_interrupted", run)
    model = hr.compile(program, backends=["test_python_interrupted"])
    with pytest.raises(KeyboardInterrupt):
        model(np.zeros(4, "float32"))
    assert model.fallbacks == []


def test_a_shared_library_is_a_backend(program, tmp_path):
    with pytest.raises(hr.MissingError, match=r"there is no file '.*none\.so'"):
        hr.load_backend(tmp_path / "none.so")
    with pytest.raises(hr.UserError, match="library: expected a path"):
        hr.load_backend(3)
    chip = Path(hr.__file__).parents[2] / "plugins/chip.so"
    if not chip.exists():
        pytest.skip("the backend for tests, chip.so, was not built beside the package")
    path = tmp_path / "sum.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { add(%x, %x) }\n')
    assert hr.load_backend(chip) == "chip"
    model = hr.compile(path, backends=["chip"], output=tmp_path / "sum.so")
    np.testing.assert_array_equal(model(np.arange(4, dtype="float32")).numpy(), [0, 2, 4, 6])
    assert not model.fallbacks


TWO_OF_ONE_NAME = """
import sys
import headrace as hr

class Own(hr.backend.Backend):
    def compile(self, regions, options):
        return []

    def load(self, data):
        return None

def register(name):
    hr.backend.register(type("Mine", (Own,), {"name": name})())

def load(name):
    return hr.load_backend(f"{sys.argv[1]}/{name}.so")

def fault(make, name):
    try:
        make(name)
    except hr.UserError as error:
        return str(error).replace(sys.argv[1], "FOLDER")

register("minus_chip")
print(fault(load, "minus_chip"))
print(load("nan_chip"), load("nan_chip"))
print(fault(register, "nan_chip"))
print(fault(load, "named_numpy"))
hr.backend.find("numpy")
print(fault(load, "named_numpy"))
print(type(hr.backend.find("numpy")).__name__, type(hr.backend.find("minus_chip")).__name__)
"""


def test_two_backends_of_one_name():
    plugins = Path(hr.__file__).parents[2] / "plugins"
    if not (plugins / "named_numpy.so").exists():
        pytest.skip("the backends for tests were not built beside the package")
    done = subprocess.run(
        [sys.executable, "-c", TWO_OF_ONE_NAME, plugins], capture_output=True, text=True, check=True, timeout=60
    )
    taken = "there is a backend '{}' already, that of {}; leave out that of {}, or give it another name"
    library = "the library 'FOLDER/{}.so'"
    assert done.stdout.splitlines() == [
        taken.format("minus_chip", "Python", library.format("minus_chip")),
        "nan_chip nan_chip",
        taken.format("nan_chip", "the library 'FOLDER/nan_chip.so'", "Python"),
        taken.format("numpy", "an installed package of Python", library.format("named_numpy")),
        taken.format("numpy", "Python", library.format("named_numpy")),
        "NumpyBackend Mine",
    ]
