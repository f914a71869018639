"""Backends as Relay users name them: lists of targets, -extern=, options in the PassContext."""

import re
from pathlib import Path

import headrace as hr
import numpy as np
import pytest
from headrace import relay

ONES = np.ones((2, 3), "float32")


def program():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    return hr.IRModule.from_expr(relay.Function([x, y], relay.subtract(relay.nn.softmax(relay.add(x, y)), y)))


def region_names(path):
    """The names of the regions in a file, which end in a number."""
    return set(re.findall(rb"tvmgen_default_[a-z]+_main_[0-9]+\b", Path(path).read_bytes()))


def kinds_of(lib, tmp_path):
    """The backend of each region of a build, by its file."""
    path = str(tmp_path / "lib.so")
    lib.export_library(path)
    return sorted({name.split(b"_")[2].decode() for name in region_names(path)})


CCOMPILER = pytest.mark.backends("ccompiler")


def result_of(lib):
    run = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    run.run(x=ONES, y=ONES)
    return run.get_output(0).numpy()


@pytest.mark.parametrize(
    "target",
    [
        ["llvm", "ccompiler"],
        ("ccompiler", "llvm"),
        ["ccompiler"],
        lambda: [hr.Target("llvm"), hr.Target("ccompiler")],
        {"cpu": "llvm", "ext_dev": "ccompiler"},
        lambda: {hr.cpu(): hr.Target("llvm"), hr.device("ext_dev"): hr.Target("ccompiler")},
        {1: "llvm", 12: "ccompiler"},
        "llvm -extern=ccompiler",
        {"kind": "llvm", "extern": ["ccompiler"]},
    ],
)
@CCOMPILER
def test_a_build_with_backends(target, tmp_path):
    target = target() if callable(target) else target  # a build without ccompiler has no such target
    lib = relay.build(program(), target)
    assert kinds_of(lib, tmp_path) == ["ccompiler"]
    np.testing.assert_allclose(result_of(lib), np.full((2, 3), 1 / 3 - 1), rtol=1e-6)
    assert lib.target.kind == "llvm"
    made = relay.create_executor("graph", program(), target=target).evaluate()(ONES, ONES)
    np.testing.assert_allclose(made.numpy(), np.full((2, 3), 1 / 3 - 1), rtol=1e-6)


@pytest.mark.parametrize(
    ("target", "first"),
    [
        (["llvm", "ccompiler", "examplejson"], "ccompiler"),
        (["llvm", "examplejson", "ccompiler"], "examplejson"),
        (["llvm", "examplejsoncompiler", "ccompiler"], "examplejson"),
        ("llvm -extern=examplejsoncompiler,ccompiler", "examplejson"),
        (["llvm -extern=ccompiler", "examplejson"], "examplejson"),
    ],
)
@pytest.mark.backends("ccompiler", "examplejson")
def test_the_order_is_the_priority(target, first, tmp_path):
    assert kinds_of(relay.build(program(), target), tmp_path) == [first]


@CCOMPILER
def test_a_model_file_takes_lists_too(tmp_path):
    path = tmp_path / "program.relay"
    path.write_text(program().astext())
    hr.compile(path, target=["llvm", "ccompiler"], output=tmp_path / "a.so")
    hr.compile(path, target="llvm -extern=ccompiler", output=tmp_path / "b.so")
    assert len(region_names(tmp_path / "a.so")) == len(region_names(tmp_path / "b.so")) == 2
    with pytest.raises(hr.UserError, match="the C compiler '/nowhere/cc' cannot be started"):
        hr.compile(path, target=["llvm", "ccompiler"], backend_options={"ccompiler": {"cc": "/nowhere/cc"}})


def test_a_function_that_compiles_regions_is_a_kind_of_target():
    with pytest.raises(hr.UserError, match="there is no kind of target 'test-late'"):
        hr.Target("test-late")
    hr.register_func("relay.ext.test-late", lambda function: None)
    assert hr.Target("test-late").kind.name == "test-late"
    assert isinstance(relay.build(program(), ["llvm", "test-late"]), relay.GraphExecutorFactoryModule)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        pytest.param(["llvm", "nobody"], "no kind of target 'nobody'; the kinds are ccompiler", marks=CCOMPILER),
        (["llvm", "llvm"], "got 2 targets of kind llvm in a list of 2; give one"),
        ([], "got 0 targets of kind llvm in a list of 0"),
        pytest.param(
            "ccompiler",
            r'made for kind llvm, beside which it is a backend: write \["llvm", "ccompiler"\]',
            marks=CCOMPILER,
        ),
        pytest.param("llvm -extern=nobody", "no backend 'nobody'; there are ccompiler", marks=CCOMPILER),
        ({"cuda": "llvm"}, r"llvm is for the CPU, and the dict has it for cuda\(0\)"),
        (["llvm", 3], "expected a str, a dict or a Target, got int"),
    ],
)
def test_errors(target, says):
    with pytest.raises(hr.UserError, match=says):
        relay.build(program(), target)


# --- options


@pytest.mark.backends("ccompiler", "examplejson")
def test_options_of_a_backend_in_the_context():
    with (
        hr.transform.PassContext(config={"relay.ext.ccompiler.options": {"cc": "/nowhere/cc"}}),
        pytest.raises(hr.UserError, match="the C compiler '/nowhere/cc' cannot be started"),
    ):
        relay.build(program(), ["llvm", "ccompiler"])
    with hr.transform.PassContext(config={"relay.ext.examplejsoncompiler.options": {}}):
        relay.build(program(), ["llvm", "examplejson"])


def test_a_codegen_reads_its_options_from_the_current_context():
    seen = []

    def module_of(name):
        def run(x, y, out):
            out[:] = x.numpy() + y.numpy()

        return hr.runtime.create_module("test-reader", {name: run}, binary=name.encode())

    def codegen(function):
        context = hr.transform.PassContext.current()
        seen.append((dict(context.config["relay.ext.test-reader.options"]), hr.Target.current().kind.name))
        return module_of(function.attrs["global_symbol"])

    hr.register_func("relay.ext.test-reader", codegen)
    hr.register_func("runtime.module.loadbinary_test-reader", lambda data: module_of(data.decode()))
    hr.ir.register_op_attr("add", "target.test-reader", lambda call: True)
    key = "relay.ext.test-reader.options"
    with hr.transform.PassContext(opt_level=3, config={key: {"level": 2, "name": "fast"}}):
        relay.build(program(), ["llvm", "test-reader"])
    assert seen == [({"level": 2, "name": "fast"}, "llvm")]
    assert key in hr.transform.PassContext.list_configs()


def test_a_target_kind_brings_options():
    hr.target.register_kind("test-optioned", options={"speed": {"type": "int", "default": 1}})
    seen = []

    def codegen(function):
        seen.append(dict(hr.transform.PassContext.current().config["relay.ext.test-optioned.options"]))
        raise hr.UserError("enough")

    hr.register_func("relay.ext.test-optioned", codegen)
    hr.ir.register_op_attr("add", "target.test-optioned", lambda call: True)
    with pytest.raises(hr.UserError, match="enough"):
        relay.build(program(), ["llvm", "test-optioned -speed=7"])
    assert seen == [{"speed": 7}]


@CCOMPILER
def test_keys_of_ones_own():
    hr.transform.register_pass_config("test.pass.depth", "int", "how deep it looks")
    with hr.transform.PassContext(config={"test.pass.depth": 3}):
        assert hr.transform.PassContext.current().config["test.pass.depth"] == 3
    assert hr.transform.PassContext.list_configs()["test.pass.depth"] == {
        "type": "int",
        "doc": "how deep it looks",
        "default": None,
    }
    for call, says in [
        (lambda: hr.transform.PassContext(config={"test.pass.depth": "deep"}), "'test.pass.depth': expected int"),
        (lambda: hr.transform.PassContext(config={"test.pass.width": 3}), "no configuration 'test.pass.width'.*depth"),
        (
            lambda: hr.transform.PassContext(config={"relay.ext.nobody.options": {}}),
            "'relay.ext.nobody.options': relay.ext.NAME.options is a key once there is the backend",
        ),
        (lambda: hr.transform.PassContext(config={"relay.ext.ccompiler.options": 3}), "options': expected dict"),
        (lambda: hr.transform.register_pass_config("test.pass.depth", "int"), "is registered already"),
        (lambda: hr.transform.register_pass_config("test.pass.other", "tree"), "the kinds are bool, int, float, str"),
        (lambda: hr.transform.register_pass_config("a b", "int"), "'a b' is not a key of a configuration"),
    ]:
        with pytest.raises(hr.UserError, match=says):
            call()


@pytest.mark.backends("ccompiler", "examplejson", "onednn")
def test_a_file_of_several_backends_loads_and_saves_to_the_same_bytes(tmp_path):
    x, w = relay.var("x", shape=(1, 2, 4, 4)), relay.const(np.ones((2, 2, 1, 1), "float32"))
    conv = relay.nn.conv2d(relay.exp(relay.round(relay.add(x, x))), w, channels=2, kernel_size=(1, 1))
    lib = relay.build(relay.Function([x], relay.erf(conv)), ["llvm", "examplejson", "ccompiler", "onednn"])
    assert kinds_of(lib, tmp_path) == ["ccompiler", "examplejson", "onednn"]
    data = (tmp_path / "lib.so").read_bytes()
    loaded = hr.runtime.load_module(str(tmp_path / "lib.so"))
    assert loaded.save_to_binary() == data
    assert hr.runtime.load_binary(loaded.type_key, data).save_to_binary() == data
