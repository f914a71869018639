"""Modules are imported when their names are used, in any order, and may be reloaded; functions of ops are text."""

import importlib
import importlib.util
import inspect
import json
import pkgutil
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402


def output_of(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


HINTED = [("headrace.nd", "gpu"), ("headrace.relay", "vm"), ("headrace.target", "cuda"), ("headrace.tir", "Schedule")]
# Runs each statement in a process of its own, in which nothing of the package was imported but the package;
# numpy, whose import takes a third of a second, is imported once for all.
EACH = """
import os, sys
import numpy
from headrace import _node

def run(text):
    child = os.fork()
    if child == 0:
        try:
            exec(text)
        except BaseException as error:
            print(text, repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0

texts = [{texts}]
print(len(texts), sum(map(run, texts)))
"""


def test_the_package_alone_imports_little():
    program = "import sys, headrace; print(*(m for m in sys.modules if m.partition('.')[0] in ('headrace', 'numpy')))"
    imported = output_of(program)
    assert "headrace._core" in imported
    assert [name for name in imported if not name.startswith(("headrace._",)) and name != "headrace"] == []
    assert [name for name in imported if name.startswith("headrace._compat")] == []
    assert output_of("import sys; from headrace import relay; relay.nn.relu; print('numpy' in sys.modules)") == [
        "False"
    ]


def test_any_module_may_be_the_first():
    names = [found.name for found in pkgutil.walk_packages(hr.__path__, "headrace.")]
    assert len(names) > 80
    texts = ", ".join(repr(f"import {name}") for name in names)
    assert output_of(EACH.format(texts=texts)) == [str(len(names))] * 2


def test_the_class_of_any_type_may_be_the_first():
    check = "cls = _node.class_of({key!r}); mixin = _node._mixins.get({key!r}, cls); assert mixin in cls.__mro__"
    keys = "[key for key in _node.all_keys() if not key.startswith('relay.attrs.')] + ['relay.attrs.UserAttrs']"
    count, passed = output_of(EACH.format(texts=f"*(f{check!r} for key in {keys})"))
    assert int(count) > 80
    assert count == passed


def test_what_is_made_first_comes_from_cpp():
    text = '#[version = "0.0.5"]\\ndef @main(%x: Tensor[(2), float32]) { exp(%x) }'
    program = (
        "import headrace as hr\n"
        f"mod = hr.get_global_func('relay.parser.ParseModule')('m', '{text}', None, [], None, {{}})\n"
        "print(mod['main'].params[0].type_annotation.concrete_shape, len(mod['main'].body.args))"
    )
    assert output_of(program) == ["(2,)", "1"]


def test_modules_are_reloaded():
    names = [found.name for found in pkgutil.walk_packages(hr.__path__, "headrace.") if "._" not in found.name]
    program = f"""
import importlib, sys
import headrace as hr
for name in {names!r}:
    importlib.reload(importlib.import_module(name))
importlib.reload(hr)
x = hr.relay.var("x", shape=(2, 3))
target = hr.Target("llvm")
assert isinstance(target, hr.Target) and target == hr.Target("llvm")
assert hr.relay.nn.dense(x, x).attrs.units is None
for place, name in {HINTED}:
    try:
        getattr(sys.modules[place], name)
    except AttributeError as error:
        print(str(error).startswith(f"{{place}} has no '{{name}}': "))
"""
    assert output_of(program) == ["True"] * 4


@pytest.mark.parametrize("name", ["headrace.relay.vm", "headrace.autotvm", "headrace.relay.nothing", "headrace.nd.gpu"])
def test_a_probe_for_a_module_that_is_elsewhere_finds_none(name):
    assert importlib.util.find_spec(name) is None


def test_a_function_of_an_op_is_text():
    for function, file in (
        (relay.nn.dense, "nn.py"),
        (relay.add, "_root_ops.py"),
        (relay.image.affine_grid, "image.py"),
    ):
        assert inspect.getsourcefile(function).endswith(f"/relay/{file}")
        assert inspect.getsource(function).startswith(f"def {function.__name__}(")
    assert (relay.add.__module__, relay.nn.dense.__module__) == ("headrace.relay", "headrace.relay.nn")
    assert "dense(data: 'Any', weight: 'Any', units: 'int | None' = None" in pydoc.render_doc("headrace.relay.nn.dense")


def test_each_op_has_a_function():
    for name in relay.Op.list_op_names():
        family, _, last = name.rpartition(".")
        if family != "annotation" and not hr.get_global_func("relay.op.IsUserOp")(relay.op.get(name)):
            home = getattr(relay, family) if family else relay
            assert inspect.isfunction(getattr(home, last)), name


def test_attributes_that_are_added_after_a_call_are_read():
    op = relay.op.register("lazy_imports.scale", override=True).set_num_inputs(1)
    x = relay.var("x", shape=(2,))
    op.add_attr("by", "dtype", "int8")
    assert op(x, by="float32").attrs.by == "float32"
    op.add_attr("to", "dtype", "int8")
    import numpy as np

    assert (op(x, to=np.float16).attrs.to, op(x, to=np.float16).attrs.by) == ("float16", "int8")
    assert relay.lazy_imports.scale(x, to=np.float16).attrs.to == "float16"
    again = relay.op.register("lazy_imports.scale", override=True).set_num_inputs(1)
    again.add_attr("to", "int", 1)
    assert again(x, to=7).attrs.to == 7
    with pytest.raises(hr.UserError, match="by"):
        again(x, by="float32")


def test_a_model_that_was_not_made_refuses_calls():
    with pytest.raises(TypeError, match="the model was not made"):
        hr.CompiledModel.__new__(hr.CompiledModel)(1)


def test_what_calls_cost_is_measured():
    command = [sys.executable, Path(__file__).parents[2] / "bench" / "calls.py", "--once", "--calls", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert list(found) == ["import headrace", "relay.nn.dense(x, w)", "f(x) of one op"]
    assert min(found.values()) > 0


def test_an_op_takes_its_compute_before_anything_of_relay_is_imported():
    program = """
import headrace as hr
hr.get_global_func("relay.op.Register")("lazy_imports.one", "", True)
try:
    hr.ir.register_op_attr("lazy_imports.one", "FTVMCompute", 3)
except hr.UserError as error:
    print(str(error).replace(" ", "_"))
"""
    assert output_of(program) == ["lazy_imports.one:_compute:_expected_a_function_or_a_PrimFunc,_got_int"]
