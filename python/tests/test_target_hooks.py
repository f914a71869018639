"""RelayToTIR, TIRToRuntime and constant_updater: backends that compile whole modules and replace constants."""

import json
import subprocess
import sys
from pathlib import Path

import headrace as hr
import numpy as np
import pytest
from headrace import relay, tir

ONES = np.ones(4, "float32")
THREES = np.full(4, 3, "float32")
SUBTRACT = """#[tir_version = "1"]
prim_func @{name}(a: Buffer[(4), float32], b: Buffer[(4), float32]) -> (c: Buffer[(4), float32]) {{
  for i in serial(4) {{
    c[i] = a[i] - b[i];
  }}
}}
"""
TWO = ", b: Buffer[(4), float32]"


def region(kind, symbol, body=relay.add):
    """A function of two parameters for a compiler."""
    a, b = relay.var("a", shape=(4,)), relay.var("b", shape=(4,))
    return relay.Function([a, b], body(a, b)).with_attr({"Compiler": kind, "global_symbol": symbol, "Primitive": 1})


def calling(*functions):
    """A module whose main adds what global functions give for its inputs."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    module = hr.IRModule()
    total = None
    for function in functions:
        name = relay.GlobalVar(function.attrs["global_symbol"])
        module[name] = function
        call = relay.Call(name, [x, y])
        total = call if total is None else relay.add(total, call)
    module["main"] = relay.Function([x, y], total)
    return module


def run(lib, x=THREES, y=ONES):
    executor = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    executor.run(x=x, y=y)
    return executor.get_output(0).numpy()


def replace_add_by_subtract(mod):
    """As a pass of a user: functions become loops, which subtract."""
    made = hr.IRModule()
    for name, function in mod.functions.items():
        assert isinstance(function, relay.Function)
        made[name] = tir.parse(SUBTRACT.format(name=name.name_hint))
    return made


@pytest.fixture(scope="module")
def kind():
    """A kind whose regions become loops that are compiled natively."""
    made = hr.target.register_kind("hook-native", options={"constant": {"type": "int", "default": 0}})
    made.set_attr("RelayToTIR", hr.transform.module_pass(lambda mod, ctx: replace_add_by_subtract(mod), opt_level=0))
    return made


def test_loops_of_a_global_function_are_compiled_natively(kind, tmp_path):
    assert callable(kind.get_attr("RelayToTIR"))
    assert kind.get_attr("TIRToRuntime") is None
    lib = relay.build(calling(region("hook-native", "first"), region("hook-native", "second")), "llvm")
    np.testing.assert_array_equal(run(lib), np.full(4, 4))
    path = str(tmp_path / "lib.so")
    lib.export_library(path)
    np.testing.assert_array_equal(hr.load(path, fallback="none")(THREES, ONES).numpy(), np.full(4, 4))


def test_loops_of_a_function_literal_are_compiled_natively(kind):
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    main = relay.Function([x, y], relay.Call(region("hook-native", "literal"), [x, y]))
    np.testing.assert_array_equal(run(relay.build(hr.IRModule.from_expr(main), "llvm")), np.full(4, 2))


def test_a_list_of_targets_chooses_what_the_hooks_compile(kind):
    hr.ir.register_op_attr("add", "target.hook-native", lambda call: True)
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    mod = hr.IRModule.from_expr(relay.Function([x, y], relay.add(x, y)))
    np.testing.assert_array_equal(run(relay.build(mod, ["llvm", "hook-native"])), np.full(4, 2))


def test_loops_become_a_module_of_the_backend():
    seen = []
    kind = hr.target.register_kind("hook-runtime", options={"constant": {"type": "int", "default": 0}})
    kind.set_attr("RelayToTIR", replace_add_by_subtract)

    def module_of(constant, names):
        def compute(x, y, out):
            out[:] = x.numpy() - y.numpy() + constant

        binary = f"{constant} {' '.join(names)}".encode()
        return hr.runtime.create_module("hook-runtime", dict.fromkeys(names, compute), binary=binary)

    def to_runtime(mod, target):
        seen.append((sorted(name.name_hint for name in mod.functions), target.attrs["constant"]))
        assert all(isinstance(function, tir.PrimFunc) for function in mod.functions.values())
        return module_of(target.attrs["constant"], [name.name_hint for name in mod.functions])

    def load(data):
        constant, *names = data.decode().split()
        return module_of(int(constant), names)

    kind.set_attr("TIRToRuntime", to_runtime)
    hr.register_func("runtime.module.loadbinary_hook-runtime", load)
    mod = calling(region("hook-runtime", "f"), region("hook-runtime", "g"))
    np.testing.assert_array_equal(run(relay.build(mod, ["llvm", "hook-runtime -constant=42"])), np.full(4, 88))
    np.testing.assert_array_equal(run(relay.build(mod, "llvm")), np.full(4, 4))
    assert seen == [(["f", "g"], 42), (["f", "g"], 0)]


def test_a_hook_compiles_regions_itself():
    """`f` is a function of a module that the hook returns, and `g` a loop program."""
    kind = hr.target.register_kind("hook-itself")

    def module_of(names):
        def compute(x, y, out):
            out[:] = x.numpy() * 10 + y.numpy()

        return hr.runtime.create_module("hook-itself", dict.fromkeys(names, compute), binary=" ".join(names).encode())

    def hook(mod):
        made = hr.IRModule({name: f for name, f in mod.functions.items() if name.name_hint == "g"})
        return replace_add_by_subtract(made).with_attr("external_mods", [module_of(["f"])])

    hr.register_func("runtime.module.loadbinary_hook-itself", lambda data: module_of(data.decode().split()))
    kind.set_attr("RelayToTIR", hook)
    lib = relay.build(calling(region("hook-itself", "f"), region("hook-itself", "g")), "llvm")
    np.testing.assert_array_equal(run(lib), np.full(4, 31 + 2))


def test_what_stays_relay_is_for_the_function_of_the_backend():
    kind = hr.target.register_kind("hook-partly")

    def only_f(mod):
        made = hr.IRModule()
        for name, function in mod.functions.items():
            made[name] = tir.parse(SUBTRACT.format(name="f")) if name.name_hint == "f" else function
        return made

    kind.set_attr("RelayToTIR", only_f)
    mod = calling(region("hook-partly", "f"), region("hook-partly", "g"))
    with pytest.raises(hr.UserError, match="a Relay function, and there is no function relay"):
        relay.build(mod, "llvm")

    def module_of(name):
        def compute(x, y, out):
            out[:] = 100 * x.numpy()

        return hr.runtime.create_module("hook-partly", {name: compute}, binary=name.encode())

    hr.register_func("relay.ext.hook-partly", lambda function: module_of(function.attrs["global_symbol"]))
    hr.register_func("runtime.module.loadbinary_hook-partly", lambda data: module_of(data.decode()))
    np.testing.assert_array_equal(run(relay.build(mod, "llvm")), np.full(4, 302))


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        (
            lambda mod: None,
            "RelayToTIR of the target kind 'hook-wrong' returned None; it must return an IRModule",
        ),
        (lambda mod: hr.IRModule(), "returned a module without the function 'f'"),
        (
            lambda mod: mod.with_attr("external_mods", 3),
            "'hook-wrong' returned a module whose attribute 'external_mods' has 3; it is a list of runtime::Modules",
        ),
        (lambda mod: mod.with_attr("external_mods", ["f"]), "whose attribute 'external_mods' has \"f\""),
        (
            lambda mod: hr.IRModule({relay.GlobalVar("f"): tir.parse(SUBTRACT.format(name="f").replace("(4)", "(5)"))}),
            "made of 'f' has a buffer a of another shape or dtype than its tensor 0",
        ),
        (
            lambda mod: hr.IRModule(
                {relay.GlobalVar("f"): tir.parse(SUBTRACT.format(name="f").replace(TWO, "").replace(" - b[i]", ""))}
            ),
            "made of 'f' has 2 buffers; it takes 3, its tensors and then its results",
        ),
    ],
)
def test_a_wrong_hook(hook, says):
    kind = hr.target.TargetKind("hook-wrong") if "hook-wrong" in hr.target.list_kinds() else None
    kind = kind or hr.target.register_kind("hook-wrong")
    kind.set_attr("RelayToTIR", hook)
    with pytest.raises(hr.UserError, match=says):
        relay.build(calling(region("hook-wrong", "f")), "llvm")


def test_other_attributes_are_refused(kind):
    with pytest.raises(hr.UserError, match="no attribute 'RelayToTE' to set; it has RelayToTIR and TIRToRuntime"):
        kind.set_attr("RelayToTE", lambda mod: mod)
    with pytest.raises(hr.UserError, match="RelayToTIR: expected a pass or a function, got int"):
        kind.set_attr("RelayToTIR", 3)


# --- constants


def scaled(kind, values):
    """A module whose main gives its input to a region that multiplies by a constant."""
    a, x = relay.var("a", shape=(4,)), relay.var("x", shape=(4,))
    f = relay.Function([a], relay.multiply(a, relay.const(values))).with_attr(
        {"Compiler": kind, "global_symbol": "f", "Primitive": 1}
    )
    return hr.IRModule({relay.GlobalVar("f"): f, relay.GlobalVar("main"): relay.Function([x], relay.GlobalVar("f")(x))})


def register_scaler(kind, names=None):
    """A backend whose module multiplies by the constants that it is given."""
    calls = []

    def module_of(data):
        held = []

        def init(constants):
            calls.append([tensor.numpy().tolist() for tensor in constants])
            held[:] = [tensor.numpy() for tensor in constants]

        def compute(x, out):
            out[:] = np.prod([x.numpy(), *held], axis=0)

        functions = {"f": compute, "__init_f": init}
        if names is not None:
            functions["get_const_vars"] = lambda: names
        return hr.runtime.create_module(kind, functions, binary=b"f")

    hr.register_func(f"relay.ext.{kind}", module_of)
    hr.register_func(f"runtime.module.loadbinary_{kind}", module_of)
    return calls


VALUES = np.array([1, 2, 3, 4], "float32")


def test_constants_reach_the_module_once(tmp_path):
    calls = register_scaler("const-plain")
    path = str(tmp_path / "lib.so")
    relay.build(scaled("const-plain", VALUES), "llvm").export_library(path)
    calls.clear()
    model = hr.load(path)
    for _ in range(3):
        np.testing.assert_array_equal(model(THREES).numpy(), 3 * VALUES)
    assert calls == [[VALUES.tolist()]]
    assert model.fallbacks == []


def test_an_updater_replaces_constants_and_the_native_form_keeps_its_own(tmp_path):
    seen, replaced = [], 10 * VALUES
    register_scaler("const-updated", ["f_scale"])

    def updater(function, symbol):
        seen.append((type(function).__name__, symbol))
        return {f"{symbol}_unused": ONES, f"{symbol}_scale": hr.nd.array(replaced)}

    hr.register_func("relay.ext.const-updated.constant_updater", updater)
    path = str(tmp_path / "lib.so")
    relay.build(scaled("const-updated", VALUES), "llvm").export_library(path)
    assert seen == [("Function", "f")]
    np.testing.assert_array_equal(hr.load(path, fallback="none")(THREES).numpy(), 30 * VALUES)

    def init(constants):
        raise RuntimeError("the chip takes no constants")

    def broken(data):
        functions = {"f": lambda x, out: None, "__init_f": init}
        return hr.runtime.create_module("const-updated", functions, binary=b"f")

    hr.register_func("runtime.module.loadbinary_const-updated", broken, override=True)
    model = hr.load(path)
    np.testing.assert_array_equal(model(THREES).numpy(), 3 * VALUES)
    assert [event["backend"] for event in model.fallbacks] == ["const-updated"]


PROGRAM_WITH_SCALER = """
import sys
sys.path.insert(0, sys.argv[1])
import headrace as hr
from headrace.__main__ import _main
from test_target_hooks import VALUES, register_scaler
register_scaler("const-grown")
if sys.argv[2] == "replaced":
    new = {"new": hr.nd.array(10 * VALUES)}
    hr.register_func("relay.ext.const-grown.constant_updater", lambda function, name: new)
sys.exit(_main(sys.argv[3:]))
"""


def test_what_replaced_constants_add_to_the_file_is_stated(tmp_path):
    (tmp_path / "parts.relay").write_text(scaled("const-grown", VALUES).astext())

    def run(constants, *words):
        command = [sys.executable, "-c", PROGRAM_WITH_SCALER, Path(__file__).parent, constants, *words]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    compiling, inspecting = ("compile", "parts.relay", "-o", "lib.so"), ("inspect", "lib.so")
    for constants, added in (("own", {"count": 0, "bytes": 0}), ("replaced", {"count": 1, "bytes": 16})):
        for verb in (compiling, inspecting):
            assert json.loads(run(constants, *verb, "--json"))["backend_constants"] == added
            said = "backends add 1 constant of 16 bytes, which the native code does not read\n" in run(constants, *verb)
            assert said == (constants == "replaced")


@pytest.mark.parametrize(
    ("name", "names", "updated", "says"),
    [
        ("const-none", ["f_const_1"], None, "asks for the constant 'f_const_1' of the region 'f', which has none of"),
        ("const-kind", None, lambda function, symbol: 3, "constant_updater returned 3 for the region 'f'"),
    ],
)
def test_wrong_constants(name, names, updated, says):
    register_scaler(name, names)
    if updated is not None:
        hr.register_func(f"relay.ext.{name}.constant_updater", updated)
    with pytest.raises(hr.UserError, match=says):
        relay.build(scaled(name, VALUES), "llvm")


def test_constants_that_nothing_takes():
    def module_of(function):
        return hr.runtime.create_module("const-deaf", {"f": lambda x, out: None}, binary=b"f")

    hr.register_func("relay.ext.const-deaf", module_of)
    hr.register_func("relay.ext.const-deaf.constant_updater", lambda function, symbol: {"f_0": hr.nd.array(VALUES)})
    with pytest.raises(hr.UserError, match="has no function '__init_f' that takes them"):
        relay.build(scaled("const-deaf", VALUES), "llvm")
