"""Functions that a program marks `Compiler`: a function of the registry, `relay.ext.NAME`, compiles them."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace.contrib import graph_executor  # noqa: E402

PROGRAM = """#[version = "0.0.5"]
def @region(%a: Tensor[(3), float32], Compiler="tripler", Primitive=1) { exp(add(%a, 0f)) }
def @main(%x: Tensor[(3), float32]) { negative(@region(add(%x, 1f))) }
"""


def tripling(name):
    """A module whose one function triples, whatever the program says: results tell that it ran."""

    def triple(x, y):
        y.copyfrom(3 * x.numpy())

    return hr.runtime.create_module("tripler", {name: triple}, binary=name.encode())


def test_a_function_of_the_registry_compiles_them():
    given = []

    @hr.register_func("relay.ext.tripler", override=True)
    def compile_region(function):
        given.append(function)
        return tripling(str(function.attrs["global_symbol"]))

    hr.register_func("runtime.module.loadbinary_tripler", lambda data: tripling(bytes(data).decode()), override=True)
    built = relay.build(hr.parser.fromtext(PROGRAM), target="llvm")
    module = graph_executor.GraphModule(built["default"](hr.cpu()))
    module.run(x=np.array([0, 1, -1], "float32"))
    assert module.get_output(0).numpy().tolist() == [-3, -6, 0]
    assert [str(function.attrs["Compiler"]) for function in given] == ["tripler"]
    # Passes leave it as it was written: the sum with zero is still there.
    assert "add(" in str(given[0])


def test_without_such_a_function_the_error_says_what_to_register():
    program = PROGRAM.replace("tripler", "unknown_compiler")
    with pytest.raises(hr.UserError, match=r"register the function relay\.ext\.unknown_compiler"):
        relay.build(hr.parser.fromtext(program), target="llvm")
