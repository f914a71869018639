"""`partition_for_BACKEND` and `extern_target`: backends without a list of targets."""

import re
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest
from headrace import relay
from headrace.relay import transform

BUILD = """
import sys
import headrace as hr
from headrace import relay
text, path = sys.argv[1:]
module = relay.parse(open(text).read()) if text.endswith(".relay") else hr.ir.load_json(open(text).read())
relay.build(module, "llvm").export_library(path)
"""
IMAGE = np.random.default_rng(0).uniform(-1, 1, (1, 3, 6, 6)).astype("float32")


def network():
    """Two convolutions, and between them an op that no backend has."""
    x, w, v = relay.var("x", shape=(1, 3, 6, 6)), relay.var("w", shape=(4, 3, 3, 3)), relay.var("v", shape=(2, 4, 1, 1))
    first = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3)))
    second = relay.nn.conv2d(relay.round(first), v, channels=2, kernel_size=(1, 1))
    random = np.random.default_rng(1)
    params = {"w": random.uniform(-1, 1, (4, 3, 3, 3)), "v": random.uniform(-1, 1, (2, 4, 1, 1))}
    module = transform.InferType()(hr.IRModule.from_expr(relay.Function([x, w, v], second)))
    return module, {name: value.astype("float32") for name, value in params.items()}


def sums():
    x = relay.var("x", shape=(2, 3))
    return hr.IRModule.from_expr(relay.Function([x], relay.exp(relay.add(x, x))))


def compilers_of(module):
    return [str(f.attrs["Compiler"]) for _, f in module.functions.items() if f.attrs and "Compiler" in f.attrs]


@pytest.mark.backends("onednn")
@pytest.mark.parametrize("name", ["onednn", "dnnl", "mkldnn"])
def test_two_regions_around_an_op_that_stays(name):
    module, params = network()
    after = getattr(relay.op.contrib, f"partition_for_{name}")(module, params)
    assert compilers_of(after) == ["onednn", "onednn"]
    assert [param.name_hint for param in after["main"].params] == ["x"]
    want = relay.create_executor("debug", mod=module).evaluate()(IMAGE, params["w"], params["v"]).numpy()
    for program in (after, module):  # the partitioned one names its backend itself
        lib = relay.build(program, "llvm" if program is after else ["llvm", name], params=params)
        assert b"tvmgen_default_onednn_main_1" in lib.get_lib().save_to_binary()
        run = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
        run.run(x=IMAGE)
        np.testing.assert_allclose(run.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.backends("onednn")
@pytest.mark.parametrize("form", ["relay", "json"])
def test_a_saved_program_builds_to_the_same_bytes_in_a_fresh_process(form, tmp_path):
    after = relay.op.contrib.partition_for_onednn(*network())
    text = tmp_path / f"program.{form}"
    text.write_text(after.astext() if form == "relay" else hr.ir.save_json(after))
    # A text has places of its own, which become the names of ops.
    here = relay.parse(text.read_text()) if form == "relay" else after
    relay.build(here, "llvm").export_library(tmp_path / "here.so")
    subprocess.run([sys.executable, "-c", BUILD, text, tmp_path / "there.so"], check=True)
    assert (tmp_path / "there.so").read_bytes() == (tmp_path / "here.so").read_bytes()
    regions = set(re.findall(rb"tvmgen_default_[a-z]+_main_[0-9]+\b", (tmp_path / "there.so").read_bytes()))
    assert sorted(regions) == [b"tvmgen_default_onednn_main_0", b"tvmgen_default_onednn_main_1"]


@pytest.mark.backends("ccompiler", "examplejson")
def test_the_other_backends():
    for name, regions in (("ccompiler", ["ccompiler"]), ("examplejson", ["examplejson"]), ("null", [])):
        assert compilers_of(getattr(relay.op.contrib, f"partition_for_{name}")(sums())) == regions


def test_backends_in_python_are_found():
    assert compilers_of(relay.op.contrib.partition_for_numpy(sums())) == ["numpy"]


BUILD_SUMS = """
import sys
import numpy as np
import headrace as hr

program = hr.relay.parse(open(sys.argv[1]).read())
x = np.ones((2, 3), "float32")
if sys.argv[2] == "build":
    run = hr.graph_executor.GraphModule(hr.relay.build(program, "llvm")["default"](hr.cpu()))
    run.run(x=x)
    got = run.get_output(0).numpy()
else:
    got = hr.compile(program, fallback="none")(x)
np.testing.assert_allclose(np.asarray(got), np.exp(x + x), rtol=1e-6)
"""


@pytest.mark.parametrize("way", ["build", "compile"])
def test_a_saved_program_finds_its_backend_in_python(way, tmp_path):
    text = tmp_path / "sums.relay"
    text.write_text(relay.op.contrib.partition_for_numpy(sums()).astext())
    done = subprocess.run(
        [sys.executable, "-c", BUILD_SUMS, text, way], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_cannot_be_partitioned():
    with pytest.raises(hr.UserError, match="expected an IRModule or a function, got int"):
        relay.op.contrib.partition_for_null(3)
    assert not hasattr(relay.op.contrib, "partition_for_nobody")


@pytest.mark.backends("ccompiler", "examplejson")
def test_extern_target_of_a_build():
    for given, source in (("ccompiler", "c"), (["examplejson", "ccompiler"], "examplejson")):
        assert relay.build(sums(), "llvm", extern_target=given).get_lib().imported_modules[0].type_key == source
        with hr.transform.PassContext(opt_level=3, extern_target=given):
            assert relay.build(sums(), "llvm").get_lib().imported_modules[0].type_key == source
    with hr.transform.PassContext(opt_level=3):
        assert relay.build(sums(), "llvm").get_lib().imported_modules == []
    with hr.transform.PassContext(opt_level=3, extern_target="examplejson"):  # the argument decides
        lib = relay.build(sums(), "llvm", extern_target="ccompiler").get_lib()
    assert lib.imported_modules[0].type_key == "c"


def test_extern_target_of_passes():
    for op in ("add", "exp"):
        relay.op.contrib.register_extern_op(op, f"for_{op}")
    module = transform.InferType()(sums())
    order = ["for_exp", "for_add"]
    after = transform.PartitionGraph(extern_target=order)(module)
    assert sorted(compilers_of(after)) == ["for_add", "for_exp"]
    steps = [transform.AnnotateTarget(), transform.MergeCompilerRegions(), transform.PartitionGraph()]
    with hr.transform.PassContext(extern_target=order):
        hr.ir.assert_structural_equal(hr.transform.Sequential(steps)(module), after)
    named = transform.PartitionGraph("net", extern_target="for_add")(module)
    assert [name for name in map(str, named.get_global_vars()) if "net" in name] == ["@tvmgen_net_for_add_main_0"]
    for op in ("add", "exp"):
        relay.op.get(op).reset_attr(f"target.for_{op}")


def test_extern_targets_that_are_none():
    with pytest.raises(hr.UserError, match="extern_target: expected the name of a backend or a list, got int"):
        relay.build(sums(), "llvm", extern_target=3)
    with pytest.raises(hr.UserError, match="nobody"):
        relay.build(sums(), "llvm", extern_target="nobody")
    with pytest.raises(hr.UserError, match=r"extern_target: config has 'relay\.AnnotateTarget\.targets', too"):
        hr.transform.PassContext(config={"relay.AnnotateTarget.targets": "a"}, extern_target="b")
    with pytest.raises(hr.UserError, match="extern_target"):
        hr.transform.PassContext(extern_target=[3])
