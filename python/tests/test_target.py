"""Targets: forms, kinds, tags, hosts, scopes, saving, compiling, errors; devices and tensors."""

import json
import pickle
import threading

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay, target  # noqa: E402

MTRIPLE = "-mtriple=x86_64-linux-gnu"


@pytest.fixture(scope="module")
def npu():
    """A kind of a user's own; one a process."""
    options = {
        "part": "str",
        "lanes": {"type": "int", "default": 8, "doc": "multipliers"},
        "fast": "bool",
        "units": "Array[str]",
    }
    return target.register_kind("test-npu", 12, ["npu"], options)


def relu():
    x = relay.var("x", shape=(2,))
    return hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))


def test_forms_of_one_target():
    text = "llvm -keys=cpu -mcpu=x86-64-v3 -mattr=+avx2,-avx512f -num-cores=4"
    one = hr.Target("llvm -mcpu=x86-64-v3 -num-cores=4 -mattr=+avx2,-avx512f")
    assert str(one) == text
    assert repr(one) == f"Target('{text}')"
    assert one.kind == "llvm"
    assert str(one.kind) == "llvm"
    assert one.mcpu == "x86-64-v3"
    assert one.mattr == one.features == ["+avx2", "-avx512f"]
    assert one.attrs["num-cores"] == 4
    assert one.keys == ["cpu"]
    assert one.host is None
    assert one.tag == ""
    assert one.device_type == one.get_target_device_type() == hr.cpu().device_type
    assert one.export() == {
        "kind": "llvm",
        "tag": "",
        "keys": ["cpu"],
        "mcpu": "x86-64-v3",
        "mattr": ["+avx2", "-avx512f"],
        "num-cores": 4,
    }
    for form in (text, one, one.export(), json.dumps(one.export()), hr.ir.load_json(hr.ir.save_json(one))):
        other = hr.Target(form)
        assert other == one
        assert hash(other) == hash(one)
        assert hr.ir.structural_equal(other, one)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != hr.Target("llvm")
    assert one != text
    assert {one: 1}[hr.Target(text)] == 1


def test_host():
    one = hr.Target("llvm -mcpu=znver2", host="llvm -mcpu=znver4")
    assert one.host == hr.Target("llvm -mcpu=znver4")
    assert one.host.host is None
    assert str(one) == "llvm -keys=cpu -mcpu=znver2 -host='llvm -keys=cpu -mcpu=znver4'"
    assert one.export()["host"] == {"kind": "llvm", "tag": "", "keys": ["cpu"], "mcpu": "znver4"}
    bare = hr.Target("llvm -mcpu=znver2")
    assert bare.host is None
    assert bare.with_host("llvm -mcpu=znver4") == one
    assert one.with_host(None) == bare
    assert hr.Target(one, host=bare).host == bare
    for form in (str(one), one.export(), json.dumps(one.export())):
        assert hr.Target(form) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_kinds():
    llvm = hr.Target("llvm").kind
    assert llvm.name == "llvm"
    assert llvm.default_keys == ["cpu"]
    assert llvm.default_device_type == 1
    assert llvm.options == ["mtriple", "mcpu", "mattr", "num-cores", "extern"]
    assert target.TargetKind.options_from_name("llvm") == {
        "mtriple": "str",
        "mcpu": "str",
        "mattr": "Array[str]",
        "num-cores": "int",
        "extern": "Array[str]",
    }
    assert llvm.describe_options()["mcpu"]["doc"].startswith("the processor")
    assert llvm == target.TargetKind("llvm") == "llvm"
    assert llvm != "c"
    assert {"llvm": 1}[llvm] == 1
    assert repr(llvm) == "TargetKind('llvm')"
    assert "llvm" in target.list_kinds()
    assert target.list_kinds() == hr.Target.list_kinds() == sorted(target.list_kinds())
    assert pickle.loads(pickle.dumps(llvm)).same_as(llvm)


def test_features():
    v3 = hr.Target(f"llvm -mcpu=x86-64-v3 {MTRIPLE}")
    assert v3.features.has_avx2 is True
    assert v3.features.has_sse4_2 is True
    assert v3.features.has_avx512f is False
    assert hr.Target(f"llvm -mcpu=x86-64-v3 -mattr=+avx512f {MTRIPLE}").features.has_avx512f is True
    assert v3.features.has_asimd is False
    with pytest.raises(AttributeError, match="no 'avx_2'; ask for has_NAME"):
        _ = v3.features.avx_2
    with pytest.raises(hr.UserError, match="unknown processor 'z80'"):
        _ = hr.Target("llvm -mcpu=z80").features.has_avx2


def test_tags():
    v3 = hr.Target("cpu/x86-64-v3")
    assert v3 == hr.Target("llvm -mcpu=x86-64-v3")
    assert v3.tag == "cpu/x86-64-v3"
    assert target.list_tags()["cpu/x86-64-v3"] == v3
    assert hr.Target(v3.export()).tag == "cpu/x86-64-v3"
    made = target.register_tag("lab/box", {"kind": "llvm", "num-cores": 3})
    assert made == hr.Target("lab/box") == hr.Target("llvm -num-cores=3")
    with pytest.raises(hr.UserError, match="'lab/box' is registered already; give override"):
        target.register_tag("lab/box", {"kind": "llvm"})
    assert target.register_tag("lab/box", {"kind": "llvm"}, override=True) == hr.Target("llvm")


def test_a_kind_of_ones_own(npu):
    assert npu == "test-npu"
    assert npu.describe_options()["lanes"] == {"type": "int", "default": 8, "doc": "multipliers"}
    assert "test-npu" in target.list_kinds()
    one = hr.Target("test-npu -part='rev b' -fast=true -units=a,b")
    assert str(one) == "test-npu -keys=npu -part='rev b' -lanes=8 -fast=true -units=a,b"
    assert one.device_type == 12
    assert one.attrs["fast"] is True
    assert one == hr.Target({"kind": "test-npu", "part": "rev b", "fast": True, "units": ["a", "b"]})
    for form in (str(one), one.export(), json.dumps(one.export())):
        assert hr.Target(form) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.features == []
    assert one.features.has_avx2 is False
    refusal = "no code generator for targets of kind 'test-npu' here; code is made for kind llvm"
    with pytest.raises(hr.UserError, match=refusal):
        relay.build(relu(), one)


def test_a_parser_of_ones_own():
    def parse(config):
        assert isinstance(config, dict)
        assert config["keys"] == ["wide"]
        if config["lanes"] > 16:
            raise ValueError("at most 16 lanes")
        return {**config, "fast": config["lanes"] > 4}

    options = {"lanes": {"type": "int", "default": 8}, "fast": "bool"}
    target.register_kind("test-parsed", 12, ["wide"], options, parser=parse)
    assert hr.Target("test-parsed").attrs["fast"] is True
    assert hr.Target("test-parsed -lanes=2").attrs["fast"] is False
    with pytest.raises(ValueError, match="at most 16 lanes"):
        hr.Target("test-parsed -lanes=17")
    for name, gives in (("test-none", None), ("test-numbers", {1: 2})):
        target.register_kind(name, parser=lambda config, gives=gives: gives)
        with pytest.raises(hr.UserError, match=f"the parser of the target kind '{name}' gave no dict by str but"):
            hr.Target(name)


def test_the_current_target():
    assert hr.Target.current() is None
    with pytest.raises(hr.UserError, match="there is no current target"):
        hr.Target.current(allow_none=False)
    seen = []
    with hr.Target("llvm -num-cores=1") as outer:
        assert hr.Target.current() == outer
        with pytest.raises(KeyError), hr.Target("llvm -num-cores=2") as inner:
            assert hr.Target.current(allow_none=False) == inner
            raise KeyError
        assert hr.Target.current() == outer
        thread = threading.Thread(target=lambda: seen.append(hr.Target.current()))
        thread.start()
        thread.join()
        with outer:
            assert hr.Target.current() == outer
    assert seen == [None]
    assert hr.Target.current() is None


def test_the_current_target_is_what_is_compiled_for(tmp_path):
    model = tmp_path / "relu.relay"
    model.write_text(relu().astext())
    data = np.array([-1, 2], "float32")
    with hr.Target("llvm -num-cores=1") as one:
        lib = relay.build(relu())
        assert lib.target == one
        executor = relay.create_executor("graph", relu())
        assert executor.target == one
        np.testing.assert_array_equal(executor.evaluate()(data).numpy(), [0, 2])
        assert hr.compile(model).threads == 1
        assert relay.build(relu(), "llvm -num-cores=2").target == hr.Target("llvm -num-cores=2")
    assert relay.build(relu()).target == hr.Target("llvm")


@pytest.mark.parametrize("form", ["text", "dict", "json", "tag", "target"])
def test_every_form_is_compiled_for(tmp_path, form):
    target.register_tag("lab/three", {"kind": "llvm", "num-cores": 3}, override=True)
    text = "llvm -num-cores=3"
    given = {
        "text": text,
        "dict": {"kind": "llvm", "num-cores": 3},
        "json": '{"kind": "llvm", "num-cores": 3}',
        "tag": "lab/three",
        "target": hr.Target(text),
    }[form]
    model = tmp_path / "relu.relay"
    model.write_text(relu().astext())
    assert hr.compile(model, target=given).threads == 3
    assert hr.InferenceSession(str(model), target=given).run(None, {"x": np.ones(2, "float32")})[0].sum() == 2
    assert relay.build(relu(), target=given).target == hr.Target(text)
    assert relay.build(relu(), target=given, target_host=text).target.host == hr.Target(text)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hr.Target("lvm"), "no kind of target 'lvm'"),
        (lambda: hr.Target(""), "the target is empty; write its kind first"),
        (lambda: hr.Target("c"), "no kind of target 'c'; the kinds are .*llvm"),
        (lambda: hr.Target("llvm -nonsense=1"), "no option 'nonsense'"),
        (lambda: hr.Target("llvm -libs=cblas"), "takes no option 'libs': .*kernels call none"),
        (lambda: hr.Target({"kind": "llvm", "nonsense": 1}), "no option 'nonsense'"),
        (lambda: hr.Target({"kind": "llvm", "keys": 3}), "keys is of type Array.str., got 3"),
        (lambda: hr.Target({"mcpu": "x"}), 'needs a "kind"'),
        (lambda: hr.Target('{"kind": '), "is not JSON"),
        (lambda: hr.Target(3), "expected a str, a dict or a Target, got int"),
        (lambda: hr.Target(None), "expected a str, a dict or a Target, got None"),
        (lambda: hr.Target(hr.ir.IntImm("int64", 3)), "expected a str, a dict or a Target, got ir.IntImm"),
        (lambda: hr.Target({1: 2}), "is a dict by device; here is one target"),
        (lambda: hr.Target("cpu/znver9"), "no tag 'cpu/znver9' of a target; near are .*cpu/znver4"),
        (lambda: hr.Target("llvm", host=3), "expected a str, a dict or a Target, got int"),
        (lambda: hr.Target("llvm", host=hr.Target("llvm", host="llvm")), "a target's host has no host of its own"),
        (lambda: hr.Target("llvm").with_host("llvm -host=llvm"), "a target's host has no host of its own"),
        (lambda: target.TargetKind("lvm"), "no kind of target 'lvm'"),
        (lambda: target.TargetKind.options_from_name("lvm"), "no kind of target 'lvm'"),
        (lambda: target.register_kind("llvm"), "the target kind 'llvm' is registered already"),
        (lambda: target.register_kind("test-k", 12, "npu"), r"default_keys: expected a list of str, .* \['npu'\]"),
        (lambda: target.register_kind("a b"), "'a b' is not a name of a kind of target"),
        (lambda: target.register_kind("test-k", 0), "device type 0; DLPack's start at 1"),
        (lambda: target.register_kind("test-k", options={"x": "float"}), "no type 'float' of a target's options"),
        (lambda: target.register_kind("test-k", options={"x": {"default": 1}}), "option 'x': write {"),
        (lambda: target.register_kind("test-k", options={"x": {"type": "int", "max": 1}}), "option 'x': write {"),
        (lambda: target.register_kind("test-k", options={"x": {"type": "int", "default": "a"}}), "x is of type int"),
        (lambda: target.register_tag("box", {"kind": "llvm"}), "'box' is not a tag: one is written GROUP/NAME"),
        (lambda: target.register_tag("lab/bad", {"kind": "lvm"}), "no kind of target 'lvm'"),
        (lambda: relay.build(relu(), hr.Target("llvm", host="llvm -mcpu=znver4")), "the target's host is"),
        (lambda: relay.build(relu(), hr.Target("llvm").copy_with(attrs={"frob": 1})), "no option 'frob'"),
        (lambda: relay.build(relu(), "llvm -num-cores=513"), "num-cores is 513; it goes from 1 to 512"),
        (lambda: hr.device("tpu"), "'tpu' in 'tpu:0' is not a kind of device; there are: cpu, cuda, opencl"),
        (lambda: hr.device(""), "'' in ':0' is not a kind of device"),
        (lambda: hr.device(1.5), "dev_type: expected a str, an int or a Target, got float"),
        (lambda: hr.device(None), "dev_type: expected a str, an int or a Target, got None"),
        (lambda: hr.device(3), "device: 3 is not the number of a device type; give a name"),
        (
            lambda: hr.nd.array([1], hr.device("cuda")),
            r"device: cuda\(0\) is not here; tensors and programs are on the CPU",
        ),
        (lambda: hr.nd.empty((1,), "int8", hr.device("cuda")), r"device: cuda\(0\) is not here"),
        (lambda: hr.nd.array([1]).copyto(hr.device("rocm", 1)), r"copyto: there is no memory on rocm\(1\)"),
        (lambda: relay.create_executor("debug", device=hr.device("cuda")), r"device: cuda\(0\) is not here"),
        (lambda: target.VirtualDevice(), "VirtualDevice: device: expected a Device, .* got NoneType"),
        (lambda: target.VirtualDevice("cuda"), "VirtualDevice: device: expected a Device, .* got str"),
        (lambda: target.VirtualDevice(hr.cpu(), memory_scope="a b"), "names no memory after the '/'"),
    ],
)
def test_errors(call, says):
    with pytest.raises(hr.UserError, match=says):
        call()


def test_tensors():
    array = hr.nd.empty((2, 3), "int32")
    assert array.shape == (2, 3)
    array.copyfrom(np.arange(6, dtype="int32").reshape(2, 3))
    np.testing.assert_array_equal(array.asnumpy(), [[0, 1, 2], [3, 4, 5]])
    other = hr.nd.empty((2, 3), "int32", hr.device("cpu", 0))
    assert array.copyto(other).same_as(other)
    np.testing.assert_array_equal(np.from_dlpack(other), array.numpy())
    assert hr.nd.from_dlpack(array).same_as(array)
    assert hr.cpu(0) == hr.device("cpu")
    assert {hr.cpu(0): 1}[hr.device("llvm")] == 1


# --- devices that programs are annotated with


def test_devices_need_not_be_here():
    cuda = hr.device("cuda", 1)
    assert (cuda.device_type, cuda.device_id, cuda.exist, str(cuda)) == (2, 1, False, "cuda(1)")
    assert cuda == hr.device(2, 1) == hr.device("gpu", 1) != hr.device("cuda")
    assert hr.device("cl") == hr.device("opencl")
    assert str(hr.device("vulkan")) == "vulkan(0)"
    assert hr.device(str(hr.Target("llvm")), 0) == hr.device("llvm -mcpu=core-avx2") == hr.cpu()
    assert hr.device(hr.Target("llvm -num-cores=2"), 1) == hr.device("cpu", 1)
    assert hr.device(" cuda -arch=sm_80", 1) == cuda
    assert hr.cpu().exist


def test_virtual_devices():
    device = target.VirtualDevice(hr.device("cuda", 1), memory_scope="global")
    assert (device.device, device.memory_scope, device.device_type_int) == (hr.device("cuda", 1), "global", 2)
    assert (str(device), repr(device)) == ("cuda:1/global", "VirtualDevice('cuda:1/global')")
    assert device == target.VirtualDevice(hr.device("gpu", 1), None, "global")
    assert hash(device) == hash(target.VirtualDevice(hr.device("gpu", 1), None, "global"))
    assert device != target.VirtualDevice(hr.device("cuda"), memory_scope="global")
    assert device != "cuda:1/global"
    on_cpu = target.VirtualDevice(target="llvm -mcpu=znver4")
    assert (on_cpu.device, on_cpu.target) == (hr.cpu(), hr.Target("llvm -mcpu=znver4"))
    assert ir.load_json(ir.save_json(on_cpu)) == on_cpu


def test_plan_devices_of_annotations():
    cpu, cuda = target.VirtualDevice(hr.cpu()), target.VirtualDevice(hr.device("cuda"))
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    total = relay.annotation.on_device(relay.add(x, y), cuda, constrain_result=False, constrain_body=True)
    f = relay.Function([x, y], relay.annotation.on_device(relay.exp(total), hr.cpu(), constrain_result=True))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(f))
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    assert mod["main"].virtual_device_ is None
    planned = relay.transform.PlanDevices()(mod)["main"]
    expected = relay.Function([x, y], relay.exp(relay.op.device_copy(relay.add(x, y), cuda, cpu)))
    expected = expected.with_attr({"param_virtual_devices": ["cuda:0", "cuda:0"], "result_virtual_device": "cpu:0"})
    ir.assert_structural_equal(planned, relay.transform.InferType()(hr.IRModule.from_expr(expected))["main"])
    assert planned.virtual_device_ == cpu
    again = relay.parse(hr.IRModule.from_expr(planned).astext())["main"]
    ir.assert_structural_equal(again, planned)
    assert again.virtual_device_ == cpu


@pytest.mark.parametrize("given", [hr.cpu(), "cpu:0", "cpu", "cpu(0)", target.VirtualDevice(hr.cpu())], ids=repr)
def test_a_device_in_a_program_is_the_same_however_it_is_given(given):
    x = relay.var("x", shape=(2,))
    for make in (
        lambda device: relay.annotation.on_device(x, device),
        lambda device: relay.device_copy(x, device, "cuda:1"),
        lambda device: relay.device_copy(x, "cuda:1", device),
    ):
        assert ir.structural_equal(make(given), make("cpu:0"), map_free_vars=True)
        assert '"cpu:0"' in str(make(given))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("cudaa:0", "'cudaa' in 'cudaa:0' is not a kind of device; there are: cpu, cuda"),
        ("(cpu:0; cuda:0)", r"virtual_device: '\(cpu:0; cuda:0\)' names 2 devices; give one, as 'cuda:0'"),
        (3, "expected str, got int 3"),
    ],
)
def test_a_program_names_no_device_that_is_none(given, told):
    x = relay.var("x", shape=(2,))
    for make in (
        lambda: relay.annotation.on_device(x, given),
        lambda: relay.device_copy(x, given, "cuda:1"),
        lambda: relay.device_copy(x, "cuda:1", given),
    ):
        with pytest.raises(hr.UserError, match=told):
            make()


def test_a_tuple_may_be_on_several_devices():
    f = relay.Function([], relay.Tuple([])).with_attr("result_virtual_device", "(cpu:0; cuda:1)")
    assert [str(device) for device in f.virtual_device_] == ["cpu:0", "cuda:1"]
