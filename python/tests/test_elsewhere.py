"""Names of Relay that are not here: asked for as an attribute or by an import, each says what there is instead."""

import importlib

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, te, tir  # noqa: E402

NAMES = [
    ("build", "relay.build compiles a program"),
    ("context", r'hr.device\("cpu", 0\)'),
    ("driver", "headrace compile"),
    ("lower", "te.create_prim_func"),
    ("contrib.debugger", "headrace bench --steps"),
    ("contrib.download", "files are got without the package"),
    ("contrib.graph_runtime", "hr.contrib.graph_executor"),
    ("contrib.relay_viz", "headrace inspect"),
    ("contrib.debug_executor", "headrace bench --steps"),
    ("ir.Range", r"the pair \(begin, end\)"),
    ("nd.gpu", "programs run on the CPU"),
    ("relay.MixedModeMutator", "relay.ExprMutator goes as deep"),
    ("relay.MixedModeVisitor", "relay.ExprVisitor goes as deep"),
    ("relay.analysis.AnnotatedRegionSet", "PartitionGraph"),
    ("relay.analysis.search_fc_transpose", "post_order_visit"),
    ("relay.build_config", "hr.transform.PassContext"),
    ("relay.expr_functor.MixedModeMutator", r"super\(\).visit_call"),
    ("relay.frontend.common", "run_infer_type"),
    ("relay.frontend.from_pytorch", "export the model to ONNX"),
    ("relay.op.register_external_compiler", "relay.ext.NAME"),
    ("relay.op.register_infer_correct_layout", "relay.op.register_convert_op_layout"),
    ("relay.op.register_injective_schedule", "schedules are not written by hand"),
    ("relay.op.register_schedule", "schedules are not written by hand"),
    ("relay.op.register_shape_func", "the type relation"),
    ("relay.op.register_strategy", "register_compute"),
    ("relay.prelude.TensorArrayOps", "tensor arrays"),
    ("relay.setrecursionlimit", "nest as deep"),
    ("relay.transform.ToCPS", "no continuation-passing form"),
    ("relay.transform.infer_layout_utils", "relay.op.register_convert_op_layout"),
    ("relay.transform.build_config", "hr.transform.PassContext"),
    ("relay.vision.proposal", "all_class_non_max_suppression"),
    ("runtime.vm", "relay.create_executor"),
    ("script", "tir.parse"),
    ("te.create_schedule", "schedules are not written by hand"),
    ("te.extern", "register_packed_func"),
    ("te.thread_axis", "schedules are not written by hand"),
    ("testing.fixture", "pytest.fixture"),
    ("testing.requires_cudnn", "testing.requires_gpu skips a test"),
    ("tir.Schedule", "schedules are not written by hand"),
    ("topi", r"tuple\(int\(dim\) for dim in shape\)"),
]


MODULES = [
    ("autotvm", "schedules are not written by hand"),
    ("relay.backend.te_compiler", "relay.build compiles a function"),
    ("relay.qnn.transform", "relay.transform.QnnCanonicalize"),
    ("relay.qnn.op.requantize_config", "rounding=..., compute_dtype=..."),
    ("relay.testing.yolo_detection", "export one to ONNX"),
    ("relay.vm", "runs control flow"),
    ("rpc", "there is no remote device"),
]


@pytest.mark.parametrize(("name", "instead"), NAMES)
def test_a_name_that_is_elsewhere(name, instead):
    place, _, last = f"headrace.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=rf"{place} has no '{last}': .*{instead}"):
        getattr(importlib.import_module(place), last)


@pytest.mark.parametrize(("name", "instead"), NAMES + MODULES)
def test_an_import_of_a_name_that_is_elsewhere(name, instead):
    place, _, last = f"headrace.{name}".rpartition(".")
    with pytest.raises(ImportError, match=instead):
        exec(f"from {place} import {last}")
    with pytest.raises(ImportError, match=instead):
        importlib.import_module(f"{place}.{last}")


def test_a_module_by_its_other_name_says_the_same():
    with pytest.raises(ImportError, match=r"headrace.relay.op has no 'register_schedule': the compiler chooses"):
        exec("from headrace.relay.op.op import register_schedule")


def test_a_name_that_is_nowhere():
    for module in (hr, hr.contrib, hr.contrib.utils, hr.ir, hr.nd, hr.runtime, hr.testing, hr.transform, te, tir):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nowhere'") as told:
            _ = module.nowhere
        assert told.value.name == "nowhere"
        with pytest.raises(ImportError, match=r"cannot import name 'nowhere'|No module named"):
            exec(f"from {module.__name__} import nowhere")
        with pytest.raises(ModuleNotFoundError, match=rf"No module named '{module.__name__}\.nowhere'"):
            importlib.import_module(f"{module.__name__}.nowhere")


def test_an_op_of_ones_own_comes_before_a_hint():
    relay.op.register("collage", override=True)
    assert relay.collage.schema.name == "collage"
    relay.op.register("quantize.twice", override=True)
    assert relay.quantize.twice.schema.name == "quantize.twice"


# --- short names that are here


def test_a_module_and_loops_show_themselves(capsys):
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.nn.relu(x))
    mod.show()
    assert capsys.readouterr().out == f"{mod.astext()}\n"
    a = te.placeholder((te.size_var("n"),), name="a")
    loops = te.create_prim_func([a, te.compute(a.shape, lambda i: a[i] + 1.0, name="b")])
    loops.show()
    assert capsys.readouterr().out == f"{loops.script()}\n"
    assert "for i in serial(n)" in loops.script()


def test_sizes_are_variables():
    n = te.size_var("n")
    assert (type(n), n.dtype, n.name_hint) == (tir.Var, "int64", "n")
    assert isinstance(tir.SizeVar("m"), tir.SizeVar)
    assert isinstance(relay.TensorType((n, 2)).shape[0], tir.SizeVar)


def test_a_target_is_created():
    assert hr.target.create("llvm -num-cores=2") == hr.Target("llvm -num-cores=2")
    with pytest.raises(hr.UserError, match="there is no kind of target 'cuda'"):
        hr.target.create("cuda")


def test_containers_of_ir():
    container = importlib.import_module("headrace.ir.container")
    x = relay.var("x", shape=(2,))
    assert isinstance(relay.Tuple([x, x]).fields, hr.ir.Array)
    assert isinstance(hr.IRModule.from_expr(x).functions, container.Map)
    assert (hr.ir.Array, hr.ir.Map) == (container.Array, container.Map) == (hr.Array, hr.Map)


def test_kinds_of_types_are_of_ir():
    assert relay.TypeVar("a", hr.ir.TypeKind.Shape).kind == relay.TypeKind.Shape
    assert hr.ir.TypeConstraint is relay.TypeRelation


def test_parameters_in_a_file(tmp_path):
    path = tmp_path / "p.params"
    hr.runtime.save_param_dict_to_file({"w": hr.nd.array([1.5, 2.5])}, path)
    assert path.read_bytes() == hr.runtime.save_param_dict({"w": hr.nd.array([1.5, 2.5])})
    assert hr.runtime.load_param_dict_from_file(str(path))["w"].numpy().tolist() == [1.5, 2.5]
    for call in (hr.runtime.load_param_dict_from_file, lambda p: hr.runtime.save_param_dict_to_file({}, p)):
        with pytest.raises(hr.UserError, match=r"path: '.*none/p.params': No such file or directory"):
            call(tmp_path / "none" / "p.params")
        with pytest.raises(hr.UserError, match=r"path: expected a path .*, got int"):
            call(5)


# --- things that nodes and preludes do not have


def test_attributes_of_ops_need_no_node():
    op = relay.op.register("elsewhere.scale", override=True)
    op.set_attrs_type_key("DictAttrs")
    with pytest.raises(hr.UserError, match=r"got 'relay.attrs.ScaleAttrs'; attributes have no class .*: op.add_attr\("):
        op.set_attrs_type_key("relay.attrs.ScaleAttrs")
    with pytest.raises(AttributeError, match=r"ir\.Op has no attribute 'nonsense'; its fields: "):
        _ = op.nonsense


def test_tensor_arrays_of_the_prelude():
    p = relay.prelude.Prelude()
    for name in ("get_name", "get_tensor_ctor", "get_var", "get_tensor_ctor_static"):
        with pytest.raises(AttributeError, match=rf"Prelude has no '{name}': there are no tensor arrays"):
            getattr(p, name)
    with pytest.raises(AttributeError, match="no function 'nonsense'"):
        _ = p.nonsense


def test_the_options_of_the_build():
    """Tests of Relay's users skip by them."""
    info = hr.support.libinfo()
    assert info["TVM_VERSION"] == hr.__version__
    assert info["USE_GRAPH_EXECUTOR"] == info["USE_LLVM"] == "ON"
    assert info.get("USE_CUDA", "OFF") == "OFF"
    assert {value for name, value in info.items() if name.startswith("USE_")} <= {"ON", "OFF"}
