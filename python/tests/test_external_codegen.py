"""Functions marked Compiler, called from everywhere in a program: by the interpreter and, where that can, compiled.

src/partition/tests/upstream_intents.md is a table of Relay's tests and these.
"""

import headrace as hr
import numpy as np
import pytest
from headrace import relay

RANDOM = np.random.default_rng(3)


def tensor(*shape, dtype="float32"):
    return RANDOM.integers(-9, 9, shape).astype(dtype)


def marked(function, compiler, symbol):
    return function.with_attr({"Primitive": 1, "Compiler": compiler, "global_symbol": symbol})


def arithmetic(symbol, make, count, shape=(10, 10), dtype="float32", compiler="ccompiler"):
    """A function of `count` parameters for the C compiler."""
    params = [relay.var(f"{symbol}_p{i}", shape=shape, dtype=dtype) for i in range(count)]
    return marked(relay.Function(params, make(*params)), compiler, symbol)


def check(mod, expected, target="llvm", **inputs):
    """Runs a module as compiled code and in the interpreter."""
    lib = relay.build(mod, target)
    run = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    run.run(**inputs)
    np.testing.assert_allclose(run.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
    given = [inputs[param.name_hint] for param in mod["main"].params]
    result = relay.create_executor("debug", mod).evaluate()(*given)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def interpreting():
    """A backend that takes any region and runs the reference interpreter for it; the number of its runs."""
    runs = []

    def module_of(text):
        (function,) = [f for name, f in relay.parse(text).functions.items() if "Compiler" in f.attrs]
        plain = relay.create_executor("debug").evaluate(relay.Function(function.params, function.body))

        def compute(*tensors):
            runs.append(len(tensors))
            tensors[-1][:] = plain(*tensors[:-1]).numpy()

        functions = {str(function.attrs["global_symbol"]): compute}
        return hr.runtime.create_module("test-interpreting", functions, binary=text.encode())

    def compile_region(function):
        mod = hr.IRModule({relay.GlobalVar("region"): function})
        return module_of(mod.astext(show_meta_data=True))

    hr.register_func("relay.ext.test-interpreting", compile_region)
    hr.register_func("runtime.module.loadbinary_test-interpreting", lambda data: module_of(data.decode()))
    return runs


# --- one and several regions, dtypes, constants


@pytest.mark.parametrize("target", ["llvm", hr.Target("llvm"), ["llvm", "ccompiler"], ["ccompiler"]])
@pytest.mark.backends("ccompiler")
def test_two_regions_of_several_ops_beside_native_ones(target):
    target = [hr.Target(target[0])] if target == ["ccompiler"] else target
    x, *w = (relay.var(name, shape=(10, 10)) for name in ["x", *(f"w{i}" for i in range(8))])
    chain = lambda a, b, c, d: relay.multiply(relay.subtract(relay.add(a, b), c), d)  # noqa: E731
    first = relay.Call(arithmetic("ccompiler_0", chain, 4), [x, *w[:3]])
    second = relay.Call(arithmetic("ccompiler_1", chain, 4), [x, *w[3:6]])
    rest = relay.subtract(relay.add(x, w[6]), w[7])
    mod = hr.IRModule.from_expr(relay.Function([x, *w], relay.concatenate((first, second, rest), axis=0)))
    data = {f"w{i}": tensor(10, 10) for i in range(8)} | {"x": tensor(10, 10)}
    d = [data[f"w{i}"] for i in range(8)]
    expected = [(data["x"] + d[0] - d[1]) * d[2], (data["x"] + d[3] - d[4]) * d[5], data["x"] + d[6] - d[7]]
    check(mod, np.concatenate(expected), target, **data)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int64"])
@pytest.mark.backends("ccompiler")
def test_one_op(dtype):
    x, y = (relay.var(name, shape=(8, 8), dtype=dtype) for name in "xy")
    call = relay.Call(arithmetic("one", relay.add, 2, (8, 8), dtype), [x, y])
    a, b = tensor(8, 8, dtype=dtype), tensor(8, 8, dtype=dtype)
    check(hr.IRModule.from_expr(relay.Function([x, y], call)), a + b, x=a, y=b)


@pytest.mark.backends("ccompiler")
def test_a_region_that_takes_what_regions_give():
    x, y = relay.var("x", shape=(2, 2)), relay.var("y", shape=(2, 2))
    times = relay.Call(arithmetic("s2", relay.multiply, 2, (2, 2)), [y, y])
    plus = relay.Call(arithmetic("s1", relay.add, 2, (2, 2)), [x, x])
    minus = relay.Call(arithmetic("s0", relay.subtract, 2, (2, 2)), [times, plus])
    a, b = tensor(2, 2), tensor(2, 2)
    check(hr.IRModule.from_expr(relay.Function([x, y], minus)), b * b - (a + a), x=a, y=b)


@pytest.mark.backends("ccompiler")
def test_constants_of_a_region():
    x, a = relay.var("x", shape=(8, 8)), relay.var("a", shape=(8, 8))
    ones = np.ones((8, 8), "float32")
    f = marked(relay.Function([a], relay.add(relay.add(a, relay.const(ones)), relay.const(2 * ones))), "ccompiler", "f")
    data = tensor(8, 8)
    check(hr.IRModule.from_expr(relay.Function([x], relay.Call(f, [x]))), data + 3, x=data)


def test_constants_that_a_module_is_given_are_for_reading(tmp_path):
    given = []

    def module_of(name):
        def run(x, y):
            y[:] = x.numpy() + given[-1].numpy()

        functions = {name: run, f"__init_{name}": lambda constants: given.append(constants[0])}
        return hr.runtime.create_module("test-constants", functions, binary=name.encode())

    hr.register_func("relay.ext.test-constants", lambda f: module_of(str(f.attrs["global_symbol"])), override=True)
    hr.register_func("runtime.module.loadbinary_test-constants", lambda data: module_of(data.decode()), override=True)
    x, a, constant = relay.var("x", shape=(512,)), relay.var("a", shape=(512,)), tensor(512)
    f = marked(relay.Function([a], relay.add(a, relay.const(constant))), "test-constants", "f")
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x], relay.Call(f, [x]))), "llvm")
    lib.export_library(tmp_path / "model.so")
    data = np.zeros(512, "float32")
    np.testing.assert_array_equal(hr.load(tmp_path / "model.so", fallback="none")(data).numpy(), constant)
    with pytest.raises(ValueError, match="read-only"):
        given[-1].numpy()[0] = 7
    with pytest.raises(ValueError, match="this tensor is for reading only"):
        given[-1][:] = data


@pytest.mark.backends("ccompiler")
def test_parameters_of_a_build_beside_constants_of_a_region():
    x, p, a = (relay.var(name, shape=(2, 3)) for name in "xpa")
    f = marked(relay.Function([a], relay.add(a, relay.const(np.ones((2, 3), "float32")))), "ccompiler", "f")
    mod = hr.IRModule.from_expr(relay.Function([x, p], relay.add(relay.Call(f, [relay.add(x, p)]), p)))
    param = tensor(2, 3)
    lib = relay.build(mod, "llvm", params={"p": param})
    run = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    run.load_params(hr.runtime.save_param_dict(lib.get_params()))
    data = tensor(2, 3)
    run.run(x=data)
    np.testing.assert_array_equal(run.get_output(0).numpy(), data + 2 * param + 1)


def depthwise(weights, padding):
    """Two convolutions in a row and their sum, with weights that are parameters or constants."""
    data = relay.var("data", shape=(1, 4, 6, 6))
    params = [data]
    if weights is None:
        params += [relay.var(f"w{i}", shape=(4, 1, 3, 3)) for i in range(2)]
        w = params[1:]
    else:
        w = [relay.const(weights)] * 2
    conv = lambda value, weight: relay.nn.conv2d(value, weight, padding=padding, kernel_size=(3, 3), groups=4)  # noqa: E731
    first = conv(data, w[0])
    second = conv(first, w[1])
    return relay.Function(params, relay.add(first, second) if padding == (1, 1) else second)


@pytest.mark.parametrize("padding", [(1, 1), (0, 1, 0, 1)])
@pytest.mark.parametrize("are_constant", [False, True])
def test_convolutions_of_a_backend(interpreting, padding, are_constant):
    weights = tensor(4, 1, 3, 3)
    plain = depthwise(weights if are_constant else None, padding)
    outer = [relay.var(name, type_annotation=p.type_annotation) for name, p in zip("abc", plain.params, strict=False)]
    mod = hr.IRModule.from_expr(relay.Function(outer, relay.Call(marked(plain, "test-interpreting", "f"), outer)))
    given = [tensor(1, 4, 6, 6)] + ([] if are_constant else [weights, weights])
    expected = relay.create_executor("debug").evaluate(plain)(*given).numpy()
    interpreting.clear()
    check(mod, expected, **dict(zip("abc", given, strict=False)))
    assert interpreting == [len(given) + 1] * 2  # by the interpreter, and by the compiled program


# --- where the call stands

ADD_ONE = """#[version = "0.0.5"]
def @f(%a: Tensor[(4), float32], Compiler="ccompiler", global_symbol="f", Primitive=1) -> Tensor[(4), float32] {
  add(%a, 1f)
}
"""
BRANCH_IS_KNOWN = "def @main(%x: Tensor[(4), float32]) { if (True) { @f(%x) } else { negative(%x) } }\n"
DATA = np.arange(4, dtype="float32")


@pytest.mark.backends("ccompiler")
def test_calls_by_name_in_lets():
    mod = relay.parse(
        ADD_ONE + "def @main(%x: Tensor[(4), float32]) { let %y = @f(%x); let %z = @f(%y); multiply(%z, %y) }\n"
    )
    check(mod, (DATA + 1) * (DATA + 2), x=DATA)


@pytest.mark.backends("ccompiler")
def test_calls_of_functions_that_lets_bind():
    f = 'fn (%a: Tensor[(4), float32], Compiler="ccompiler", global_symbol="g") { add(%a, 1f) }'
    mod = relay.parse(
        f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{ let %f = {f}; multiply(%f(%x), %f(%x)) }}\n'
    )
    check(mod, (DATA + 1) ** 2, x=DATA)


@pytest.mark.backends("ccompiler")
def test_calls_in_branches():
    mod = relay.parse(
        ADD_ONE + "def @main(%c: bool, %x: Tensor[(4), float32]) { if (%c) { @f(%x) } else { negative(@f(@f(%x))) } }\n"
    )
    evaluate = relay.create_executor("debug", mod).evaluate()
    np.testing.assert_array_equal(evaluate(np.array(True), DATA).numpy(), DATA + 1)
    np.testing.assert_array_equal(evaluate(np.array(False), DATA).numpy(), -DATA - 2)
    with pytest.raises(hr.UserError, match="`if` is control flow, which artifacts do not have yet"):
        relay.build(mod, "llvm")
    known = relay.transform.PartialEvaluate()(relay.parse(ADD_ONE + BRANCH_IS_KNOWN))
    check(known, DATA + 1, x=DATA)


@pytest.mark.backends("ccompiler")
def test_calls_in_a_recursive_function():
    text = (
        ADD_ONE
        + """def @go(%n: int32, %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  if (equal(%n, 0)) { %x } else { @go(subtract(%n, 1), @f(%x)) }
}
"""
    )
    mod = relay.parse(text + "def @main(%n: int32, %x: Tensor[(4), float32]) { @go(%n, %x) }\n")
    evaluate = relay.create_executor("debug", mod).evaluate()
    for count in (0, 1, 300):
        np.testing.assert_array_equal(evaluate(np.array(count, "int32"), DATA).numpy(), DATA + count)
    with pytest.raises(hr.UserError, match="calls itself, is control flow"):
        relay.build(mod, "llvm")
    known = relay.parse(text + "def @main(%x: Tensor[(4), float32]) { @go(3, %x) }\n")
    check(relay.transform.PartialEvaluate()(known), DATA + 3, x=DATA)


def test_a_function_of_the_process_computes_a_region_by_name():
    hr.register_func("test_named_region", lambda a, out: out.copyfrom(5 * a.numpy()))
    mod = relay.parse(
        ADD_ONE.replace('global_symbol="f"', 'global_symbol="test_named_region"').replace("ccompiler", "no_codegen")
        + "def @main(%x: Tensor[(4), float32]) { let %y = @f(%x); negative(%y) }\n"
    )
    run = hr.graph_executor.GraphModule(relay.build(mod, "llvm")["default"](hr.cpu()))
    run.run(x=DATA)
    np.testing.assert_array_equal(run.get_output(0).numpy(), -5 * DATA)
