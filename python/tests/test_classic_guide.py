"""The programs of the classic guide for backend authors, from Python: C source, text graphs, names of that time."""

import shutil
import subprocess
import threading

import headrace as hr
import numpy as np
import pytest
from headrace import relay

SHAPE = (10, 10)


def program(compiler, symbol="ccompiler_0"):
    """((a + b) - c) * d on 10 x 10, all of it for one compiler."""
    inner = [relay.var(f"{name}0", shape=SHAPE) for name in "abcd"]
    a, b, c, d = inner
    body = relay.multiply(relay.subtract(relay.add(a, b), c), d)
    f = relay.Function(inner, body).with_attr({"Primitive": 1, "Compiler": compiler, "global_symbol": symbol})
    outer = [relay.var(name, shape=SHAPE) for name in "abcd"]
    return hr.IRModule.from_expr(relay.Function(outer, relay.Call(f, outer)))


def inputs(seed=0):
    generator = np.random.default_rng(seed)
    data = {name: generator.random(SHAPE, "float32") for name in "abcd"}
    return data, ((data["a"] + data["b"]) - data["c"]) * data["d"]


def run(lib, data):
    executor = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    executor.run(**data)
    return executor.get_output(0).numpy()


@pytest.mark.backends("ccompiler")
def test_the_guides_program_by_the_c_compiler(tmp_path):
    lib = relay.build(program("ccompiler"), "llvm")
    data, expected = inputs()
    np.testing.assert_allclose(run(lib, data), expected, rtol=1e-6)
    (source,) = lib.get_lib().imported_modules
    assert source.type_key == "c"
    text = source.get_source()
    for name in ("void ccompiler_0_(", "int32_t ccompiler_0__wrapper_(DLTensor* i0", "int32_t ccompiler_0("):
        assert name in text
    path = str(tmp_path / "lib.so")
    lib.export_library(path)
    loaded = hr.runtime.load_module(path)
    assert loaded.imported_modules == []
    np.testing.assert_allclose(run(loaded, data), expected, rtol=1e-6)


@pytest.mark.parametrize("compiler", ["gcc", "gcc-12", "clang", "clang-19"])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.backends("ccompiler")
def test_any_c_compiler_takes_the_text(compiler, count, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    if count == 4:
        module = program("ccompiler")
    else:
        a, x = relay.var("a", shape=SHAPE), relay.var("x", shape=SHAPE)
        f = relay.Function([a], relay.negative(a)).with_attr({"Compiler": "ccompiler", "global_symbol": "ccompiler_0"})
        module = hr.IRModule.from_expr(relay.Function([x], relay.Call(f, [x])))
    (source,) = relay.build(module, "llvm").get_lib().imported_modules
    assert ("TVM_DLL_EXPORT_TYPED_FUNC(ccompiler_0, ccompiler_0__wrapper_)" in source.get_source()) == (count == 1)
    text = tmp_path / "regions.c"
    text.write_text(source.get_source("file"))
    subprocess.run([compiler, "-std=c11", "-Wall", "-Werror", "-c", str(text), "-o", str(tmp_path / "r.o")], check=True)


C_SOURCE = """
static int32_t {name}_wrapper(DLTensor* a, DLTensor* b, DLTensor* c, DLTensor* d, DLTensor* out) {{
  for (int i = 0; i < 100; ++i)
    ((float*)out->data)[i] =
        ((((float*)a->data)[i] + ((float*)b->data)[i]) - ((float*)c->data)[i]) * ((float*)d->data)[i];
  return 0;
}}
TVM_DLL_EXPORT_TYPED_FUNC({name}, {name}_wrapper)
"""


@pytest.mark.parametrize("fmt", ["c", "cc"])
@pytest.mark.parametrize(
    "creator",
    ["module.csource_module_create", "runtime.module.csource_module_create", "runtime.CSourceModuleCreate"],
)
def test_a_function_of_python_that_writes_c(fmt, creator):
    def codegen(function):
        name = str(function.attrs["global_symbol"])
        module = hr.get_global_func(creator)(C_SOURCE.format(name=name), fmt, [name], [])
        assert module["get_symbol"]() == name
        assert list(module["get_func_names"]()) == [name]
        return module

    hr.register_func("relay.ext.test_python_c", codegen, override=True)
    lib = relay.build(program("test_python_c", "python_c_0"), "llvm")
    data, expected = inputs(1)
    np.testing.assert_allclose(run(lib, data), expected, rtol=1e-6)


GRAPHS = """   subgraph_0
     input 0 10 10
  input 1 10 10
 input 2 10 10
\t input 3 10 10
  add 4 inputs: 0 1 shape: 10 10
  sub 5 inputs: 4 2 shape: 10 10
  mul 6 inputs: 5 3 shape: 10 10

subgraph_1
  input 0 2
  add 1 inputs: 0 0 shape: 2
"""


@pytest.mark.backends("examplejson")
@pytest.mark.parametrize("compiler", ["examplejson", "examplejsoncompiler"])
def test_the_guides_program_as_a_graph(compiler, tmp_path):
    path = str(tmp_path / "lib.so")
    relay.build(program(compiler, "subgraph_0"), "llvm").export_library(path)
    loaded = hr.runtime.load_module(path)
    assert [module.type_key for module in loaded.imported_modules] == ["examplejson"]
    assert loaded.imported_modules[0].get_source().startswith("subgraph_0\n")
    data, expected = inputs(6)
    np.testing.assert_allclose(run(loaded, data), expected, rtol=1e-6)


@pytest.fixture
def graphs(tmp_path):
    path = tmp_path / "graphs.txt"
    path.write_text(GRAPHS)
    return hr.runtime.load_module(str(path), "examplejson")


@pytest.mark.backends("examplejson")
def test_a_text_graph_of_a_file(graphs):
    assert graphs.type_key == "examplejson"
    data, expected = inputs(2)
    first, second = graphs["subgraph_0"], graphs["subgraph_1"]  # both are looked up before either is called
    out = hr.nd.empty(SHAPE)
    given = first(*(hr.nd.array(data[name]) for name in "abcd"), out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(given.numpy(), out.numpy())
    small = hr.nd.empty((2,))
    second(hr.nd.array(np.array([1, 2], "float32")), small)
    np.testing.assert_array_equal(small.numpy(), [2, 4])


@pytest.mark.backends("examplejson")
def test_two_threads_at_once(graphs):
    wrong = []

    def work(seed):
        data, expected = inputs(seed)
        tensors = [hr.nd.array(data[name]) for name in "abcd"]
        for _ in range(50):
            out = hr.nd.empty(SHAPE)
            graphs["subgraph_0"](*tensors, out)
            if not np.allclose(out.numpy(), expected, rtol=1e-6):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.backends("examplejson")
def test_names_of_the_guide():
    for name in ("module.examplejson_module_create", "runtime.module.examplejson_module_create"):
        module = hr.get_global_func(name)(GRAPHS)
        assert module.implements_function("subgraph_1")
    load = hr.get_global_func("module.loadbinary_examplejson")
    assert load(GRAPHS.encode()).type_key == "examplejson"
    assert hr.get_global_func("module.loadfile_examplejson", allow_missing=True) is not None
    hr.register_func("module.loadbinary_test_old_name", lambda data: module)
    assert hr.runtime.load_binary("test_old_name", b"x").type_key == "examplejson"


@pytest.mark.backends("ccompiler")
def test_tuples_in_a_region():
    a, b = relay.var("a", shape=SHAPE), relay.var("b", shape=SHAPE)
    pair = relay.Tuple([relay.add(a, b), relay.subtract(a, b)])
    f = relay.Function([a, b], relay.multiply(relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)))
    f = f.with_attr({"Compiler": "ccompiler", "global_symbol": "tuples"})
    x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x, y], relay.Call(f, [x, y]))), "llvm")
    data, _ = inputs(5)
    got = run(lib, {"x": data["a"], "y": data["b"]})
    np.testing.assert_allclose(got, (data["a"] + data["b"]) * (data["a"] - data["b"]), rtol=1e-6)
