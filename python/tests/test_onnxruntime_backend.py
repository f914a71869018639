"""The backend onnxruntime: models with nodes that no op stands for."""

import base64
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from support_table import check_table  # noqa: E402

F32 = TensorProto.FLOAT


def save(path, nodes, inputs, outputs, initializers=(), domains=()) -> str:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        [onnx.numpy_helper.from_array(data, name) for name, data in initializers],
    )
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return str(path)


@pytest.fixture
def model(tmp_path):
    """relu(x), its determinants, and two nodes of onnxruntime's own domain, one of which has a weight."""
    diagonal = np.int64(-1)
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Det", ["a"], ["d"], name="det"),
        helper.make_node("Trilu", ["a", "w"], ["m"], name="upper", domain="com.microsoft", upper=1),
        helper.make_node("Trilu", ["m"], ["g"], name="lower", domain="com.microsoft", upper=0),
        helper.make_node("Add", ["g", "a"], ["y"], name="add"),
    ]
    return save(
        tmp_path / "m.onnx",
        nodes,
        [("x", [4, 3, 3])],
        [("d", F32, [4]), ("y", F32, [4, 3, 3])],
        [("w", diagonal)],
        ["com.microsoft"],
    )


def expected(path, x):
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})


def test_nodes_without_an_op_run_by_onnxruntime_and_the_rest_natively(model, tmp_path):
    x = np.random.default_rng(1).standard_normal((4, 3, 3)).astype("float32")
    want = expected(model, x)
    file = tmp_path / "m.so"
    compiled = hr.compile(model, backends=["onnxruntime"], output=file)
    for one in (compiled, hr.load(file), hr.load(file, fallback="none", region_timeout=60)):
        got = one(x=x)
        np.testing.assert_allclose(got[0].numpy(), want[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1].numpy(), want[1], rtol=1e-5, atol=1e-6)
        assert one.fallbacks == []


@pytest.mark.backends("ccompiler")
def test_without_the_backend_the_error_names_the_nodes(model):
    with pytest.raises(hr.UserError, match=r"\(Det\): the operator is not supported"):
        hr.compile(model)
    with pytest.raises(hr.UserError, match=r"\(Det\): the operator is not supported \(ccompiler: "):
        hr.compile(model, backends=["ccompiler"])


def test_two_backends_are_asked_in_their_order(model):
    x = np.ones((4, 3, 3), "float32")
    got = hr.compile(model, backends=["numpy", "onnxruntime"])(x=x)
    np.testing.assert_allclose(got[1].numpy(), expected(model, x)[1], rtol=1e-5)


def test_a_node_that_onnxruntime_does_not_know(tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Foo", ["x"], ["y"], domain="com.example")],
        [("x", [2])],
        [("y", F32, [2])],
        domains=["com.example"],
    )
    with pytest.raises(hr.UserError, match=r"onnxruntime: onnxruntime does not open the model: .*com.example"):
        hr.compile(path, backends=["onnxruntime"])


def test_several_results_and_an_input_that_is_left_out(tmp_path):
    nodes = [helper.make_node("GroupQueryAttention", ["x", "x", "x", "", "", "last", "all"], ["y", "k", "v"],
                              domain="com.microsoft", num_heads=2, kv_num_heads=2)]  # fmt: skip
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", [1, 2, 16])],
        [("y", F32, [1, 2, 16]), ("k", F32, [1, 2, 2, 8]), ("v", F32, [1, 2, 2, 8])],
        [("last", np.int32([1])), ("all", np.int32(2))],
        ["com.microsoft"],
    )
    x = np.linspace(-1, 1, 32, dtype="float32").reshape(1, 2, 16)
    want = expected(path, x)
    got = hr.compile(path, backends=["onnxruntime"])(x=x)
    for one, reference in zip(got, want, strict=True):
        np.testing.assert_allclose(one.numpy(), reference, rtol=1e-5, atol=1e-6)


def test_nodes_of_functions(tmp_path):
    det = helper.make_function(
        "local", "D", ["a"], ["b"], [helper.make_node("Det", ["a"], ["b"], name="d")], [helper.make_opsetid("", 17)]
    )
    nodes = [
        helper.make_node("D", ["x"], ["y"], domain="local"),
        helper.make_node("Neg", ["x"], ["m"]),
        helper.make_node("D", ["m"], ["z"], domain="local"),
    ]
    path = save(tmp_path / "m.onnx", nodes, [("x", [4, 3, 3])], [("y", F32, [4]), ("z", F32, [4])], domains=["local"])
    made = onnx.load(path)
    made.functions.append(det)
    onnx.save(made, path)
    x = np.random.default_rng(1).standard_normal((4, 3, 3)).astype("float32")
    got = hr.compile(path, backends=["onnxruntime"])(x=x)
    for one, reference in zip(got, expected(path, x), strict=True):
        np.testing.assert_allclose(one.numpy(), reference, rtol=1e-5, atol=1e-6)


def test_its_options_and_its_bytes_are_checked(model):
    with pytest.raises(hr.UserError, match="the backend 'onnxruntime' has no option 'speed'"):
        hr.compile(model, backends=["onnxruntime"], backend_options={"onnxruntime": {"speed": 1}})
    with pytest.raises(hr.UserError, match="onnxruntime does not open the model"):
        hr.backend.find("onnxruntime").load(b"no model")


class Declared(hr.backend.Backend):
    """Takes com.example.Twice by the types that the model declares."""

    name = "test-declared"
    answer: object = None

    def supports(self, call):
        return call.op.name == "extern.onnx" and call.attrs.op == "com.example.Twice"

    def compile(self, regions, options):
        return [b"twice" for _ in regions]

    def load(self, data):
        def run(name, inputs, outputs):
            outputs[0][...] = 2 * inputs[0]

        return run


class Claims(Declared):
    """A `Declared` backend with an answer of its own to claim."""

    name = "test-claims"

    def claim(self, node):
        self.seen = node
        return self.answer


def twice(tmp_path, declared) -> str:
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain="com.example"), helper.make_node("Relu", ["t"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [("x", [2])], [("y", F32, [2])], domains=["com.example"])
    if declared:
        proto = onnx.load(path)
        proto.graph.value_info.append(helper.make_tensor_value_info("t", F32, [2]))
        onnx.save(proto, path)
    return path


def test_a_backend_without_claim_takes_nodes_whose_types_the_model_declares(tmp_path):
    hr.backend.register(Declared(), override=True)
    got = hr.compile(twice(tmp_path, declared=True), backends=["test-declared"])(x=np.array([-1, 3], "float32"))
    np.testing.assert_array_equal(got.numpy(), [0, 6])
    with pytest.raises(hr.UserError, match="the model does not declare the types of its results"):
        hr.compile(twice(tmp_path, declared=False), backends=["test-declared"])


def test_answers_to_claim_are_checked(tmp_path):
    backend = Claims()
    hr.backend.register(backend, override=True)
    path = twice(tmp_path, declared=False)
    backend.answer = [hr.relay.TensorType((2,), "float32")]
    got = hr.compile(path, backends=["test-claims"])(x=np.array([-1, 3], "float32"))
    np.testing.assert_array_equal(got.numpy(), [0, 6])
    assert backend.seen.op == "com.example.Twice"
    assert backend.seen.opset == 1
    assert b"com.example" in backend.seen.message
    assert [str(one.dtype) for one in backend.seen.inputs] == ["float32"]
    assert backend.seen.results == [None]
    for answer, message in (
        ("it has no time", r"\(test-claims: it has no time\)"),
        ([None], "claim gave .*, expected a list of relay.TensorType, or a sentence"),
        (7, "claim gave .*, expected a list of relay.TensorType, or a sentence"),
        ([], "says the types of 0 results, and it has 1"),
    ):
        backend.answer = answer
        with pytest.raises(hr.UserError, match=message):
            hr.compile(path, backends=["test-claims"])


def test_a_file_with_such_a_region_needs_the_backend(tmp_path):
    hr.backend.register(Declared(), override=True)
    file = tmp_path / "m.so"
    hr.compile(twice(tmp_path, declared=True), backends=["test-declared"], output=file)
    run = subprocess.run(
        [sys.executable, "-c", f"import headrace as hr; hr.load({str(file)!r})"], capture_output=True, text=True
    )
    assert run.returncode != 0
    assert "needs the backend 'test-declared', and" in run.stderr


def test_a_result_of_another_size_than_the_model_declares_is_an_error(tmp_path):
    # Only a run tells how many elements are selected.
    nodes = [helper.make_node("Compress", ["x", "c"], ["y"], axis=0)]
    path = tmp_path / "m.onnx"
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", F32, [4]), helper.make_tensor_value_info("c", TensorProto.BOOL, [4])],
        [helper.make_tensor_value_info("y", F32, [2])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    text = tmp_path / "m.relay"
    text.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32], %c: Tensor[(4), bool]) { NODE }\n')
    node = base64.b64encode(nodes[0].SerializeToString()).decode()
    call = f'extern.onnx((%x, %c), node="{node}", op="Compress", opset=17, results=["float32[2]"])'
    text.write_text(text.read_text().replace("NODE", call))
    model = hr.compile(text, backends=["onnxruntime"])
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(model(x=x, c=np.array([0, 1, 1, 0], bool)).numpy(), [1, 2])
    with pytest.raises(hr.UserError, match=r"result 0 of onnxruntime is float32\[1\], and the model was compiled for"):
        model(x=x, c=np.array([0, 1, 0, 0], bool))


def test_an_output_of_unknown_rank_is_no_scalar(tmp_path):
    nodes = [helper.make_node("CDist", ["x", "x"], ["y"], domain="com.microsoft", metric="euclidean")]
    path = save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", F32, [2, 2])], domains=["com.microsoft"])
    x = np.arange(6, dtype="float32").reshape(2, 3)
    got = hr.compile(path, backends=["onnxruntime"])(x=x)
    np.testing.assert_allclose(got.numpy(), expected(path, x)[0], rtol=1e-5)


@pytest.mark.backends("ccompiler")
def test_a_call_that_no_backend_takes_names_the_node(tmp_path):
    text = tmp_path / "m.relay"
    text.write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) '
        '{ extern.onnx((%x,), node="CgF4EgF5IgNGb28=", op="Foo", opset=1, results=["float32[4]"]) }\n'
    )
    with pytest.raises(hr.UserError, match=r"the node .* and no backend computes it: no other backend was asked for"):
        hr.compile(text)
    with pytest.raises(hr.UserError, match="no backend computes it: ccompiler: "):
        hr.compile(text, backends=["ccompiler"])


def test_the_conformance_kit_passes():
    reports = hr.backend.check("onnxruntime", ["extern.onnx/*"])
    assert sorted(report.case.split("/")[1] for report in reports) == ["Add", "Exp", "Softmax", "Split"]
    assert all(report.claimed for report in reports)
    findings = [(report.case, one) for report in reports for one in report.findings]
    assert findings == []


def test_the_support_table_of_the_readme(request):
    check_table("onnxruntime", bless=request.config.getoption("--bless"))


class Zeros(hr.backend.Backend):
    """Claims nodes of ONNX models and gives zeros."""

    name, version = "zeros_of_nodes", "1"

    def supports(self, call):
        return call.op.name == "extern.onnx" or "is an op of its own"

    def compile(self, regions, options):
        return [b"0"] * len(regions)

    def load(self, data):
        def run(name, inputs, outputs):
            for output in outputs:
                output[...] = 0

        return run


def test_the_conformance_kit_finds_a_wrong_node():
    hr.backend.register(Zeros(), override=True)
    (report,) = hr.backend.check("zeros_of_nodes", ["extern.onnx/Exp"])
    assert report.claimed
    assert "result" in {finding.check for finding in report.findings}


def call_text(op, dtypes, result, opset=17, shape="2, 3", **attributes) -> str:
    """A program of one node, written by hand."""
    names = [f"x{i}" for i in range(len(dtypes))]
    node = base64.b64encode(helper.make_node(op, names, ["y"], name=op, **attributes).SerializeToString()).decode()
    params = ", ".join(f"%{name}: Tensor[({shape}), {dtype}]" for name, dtype in zip(names, dtypes, strict=True))
    operands = "".join(f"%{name}, " for name in names)
    call = f'extern.onnx(({operands}), node="{node}", op="{op}", opset={opset}, results=["{result}"])'
    return f'#[version = "0.0.5"]\ndef @main({params}) {{ {call} }}\n'


def softmax(x):
    exps = np.exp(x - x.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def verdict_on(text):
    function = hr.relay.transform.InferType()(hr.relay.parse(text))["main"]
    return hr.backend.find("onnxruntime").supports(function.body)


@pytest.mark.parametrize(
    ("op", "dtypes", "taken"),
    [
        ("Exp", ["float32"], True),
        ("Exp", ["float64"], True),
        ("Exp", ["float16"], True),
        ("Exp", ["int8"], False),
        ("Exp", ["bool"], False),
        ("Softmax", ["float32"], True),
        ("Softmax", ["int8"], False),
        ("Softmax", ["int64"], False),
        ("Add", ["float32", "float32"], True),
        ("Add", ["int8", "int8"], True),
        ("Add", ["bool", "bool"], False),
        ("Add", ["int8", "float32"], False),
    ],
)
def test_a_call_by_hand_is_taken_where_onnxruntime_has_a_kernel(tmp_path, op, dtypes, taken):
    text = call_text(op, dtypes, f"{dtypes[0]}[2,3]")
    verdict = verdict_on(text)
    file = tmp_path / "m.relay"
    file.write_text(text)
    if not taken:
        assert "onnxruntime does not open the model: " in verdict
        with pytest.raises(hr.UserError, match=r"no backend computes it: onnxruntime: .*does not open the model"):
            hr.compile(file, backends=["onnxruntime"])
        return
    assert verdict is True
    inputs = {f"x{i}": np.arange(6).reshape(2, 3).astype(dtype) for i, dtype in enumerate(dtypes)}
    want = {"Exp": np.exp, "Add": np.add, "Softmax": softmax}[op](*inputs.values())
    got = hr.compile(file, backends=["onnxruntime"])(**inputs)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-3 if dtypes == ["float16"] else 1e-6)


def marked(text: str) -> str:
    """The program with its main as a function that is marked for onnxruntime."""
    params, _, body = text.partition("def @main(")[2].partition(") { ")
    names = ", ".join("%" + one.partition(":")[0] for one in params.split("%")[1:])
    return (
        f'#[version = "0.0.5"]\ndef @f({params}, Compiler="onnxruntime") {{ {body}\n'
        f"def @main({params}) {{ @f({names}) }}\n"
    )


def test_a_marked_region_of_nested_tuples():
    call = call_text("Exp", ["float32"], "float32[2,3]").partition(") { ")[2].partition(" }")[0]
    hr.backend.find("onnxruntime")
    x = np.arange(6, dtype="float32").reshape(2, 3)
    for item, want in (("%1.1", (x,)), ("%1.0", (np.exp(x), x)), ("%1.2", (np.exp(x),))):
        body = f"%0 = {call}; %1 = ((%0, %x0), %x0, %0); {item}"
        program = hr.relay.parse(marked(f"def @main(%x0: Tensor[(2, 3), float32]) {{ {body} }}\n"))
        got = hr.compile(program, fallback="none")(x)
        got = got if isinstance(got, tuple) else (got,)
        assert len(got) == len(want)
        for one, reference in zip(got, want, strict=True):
            np.testing.assert_allclose(one.numpy(), reference, rtol=1e-6)


@pytest.mark.parametrize(
    ("params", "body", "refusal"),
    [
        ("%x: Tensor[(2), float32]", "exp(%x)", "the region calls exp; onnxruntime computes the nodes of ONNX models"),
        ("%x: Tensor[(2), float32]", "%0 = fn(%a: Tensor[(2), float32]) { %a }; %0(%x)", "the region calls a function"),
        ("%x: Tensor[(2), float32]", "let %v = %x; %v", "the region holds a Let, which is not a call of extern.onnx"),
        ("%x: Tensor[(2), bfloat16]", "(%x, %x)", "onnxruntime takes no arrays of bfloat16 from numpy"),
    ],
)
def test_a_marked_region_that_is_refused(params, body, refusal):
    hr.backend.find("onnxruntime")
    program = hr.relay.parse(marked(f"def @main({params}) {{ {body} }}"))
    with pytest.raises(hr.UserError, match=f"'onnxruntime' does not compile the region 'f': {refusal}"):
        hr.compile(program)


def test_a_marked_node_that_onnxruntime_does_not_compute():
    hr.backend.find("onnxruntime")
    program = hr.relay.parse(marked(call_text("Exp", ["int8"], "int8[2,3]")))
    with pytest.raises(hr.UserError, match="does not compile the region 'f': onnxruntime does not open the model: "):
        hr.compile(program)


def test_reasons_beside_the_kernel():
    bfloat16 = verdict_on(call_text("Identity", ["bfloat16"], "bfloat16[2,3]"))
    assert bfloat16 == "onnxruntime takes no arrays of bfloat16 from numpy"
    unknown = verdict_on(call_text("Exp", ["float32"], "float32[2,3]", shape="?, 3"))
    assert unknown == "it has an input whose shape only a run knows"
    dtype = verdict_on(call_text("Exp", ["float32"], "float64[2,3]"))
    assert dtype == "onnxruntime computes its result 0 as float32[2, 3], and not as float64[2, 3]"
    shape = verdict_on(call_text("Exp", ["float32"], "float32[3,2]"))
    assert shape == "onnxruntime computes its result 0 as float32[2, 3], and not as float32[3, 2]"
    inputs = verdict_on(call_text("Add", ["float32"], "float32[2,3]"))
    assert "has input size 1" in inputs
    opset = verdict_on(call_text("Exp", ["float32"], "float32[2,3]", opset=999))
    assert "onnxruntime does not open the model: " in opset
    scalar = verdict_on(call_text("ReduceSum", ["float32"], "int32[]", keepdims=0))
    assert scalar == "onnxruntime computes its result 0 as float32[], and not as int32[]"
    branch = helper.make_graph(
        [helper.make_node("Neg", ["v1"], ["y"])], "b", [], [helper.make_tensor_value_info("y", F32, [])]
    )
    subgraph = verdict_on(call_text("If", ["bool"], "float32[]", shape="", then_branch=branch, else_branch=branch))
    assert subgraph == "it has a subgraph, which may use names of the graph around it"


def test_small_constants_are_part_of_the_question():
    text = call_text("ConstantOfShape", ["int64"], "float32[2,3]", shape="2")
    assert verdict_on(text) is True  # only a run tells the sizes
    bound = hr.relay.build_module.bind_params_by_name(
        hr.relay.parse(text)["main"], {"x0": hr.nd.array(np.array([4, 5], "int64"))}
    )
    body = hr.relay.transform.InferType()(hr.ir.IRModule.from_expr(bound))["main"].body
    said = hr.backend.find("onnxruntime").supports(body)
    assert said == "onnxruntime computes its result 0 as float32[4, 5], and not as float32[2, 3]"


def test_equal_nodes_are_opened_once(monkeypatch):
    from headrace.backends.onnxruntime import _model

    opened = []
    open_session = _model.open_session
    monkeypatch.setattr(_model, "open_session", lambda model: opened.append(model) or open_session(model))
    for name in ("first", "second", "third"):
        node = helper.make_node("Selu", [f"{name}_x"], [f"{name}_y"], name=name, alpha=0.123)
        shown = hr.backend.OnnxNode(
            "Selu", 17, node.SerializeToString(), [hr.relay.TensorType((2, 7), "float32")], [None]
        )
        (kind,) = hr.backend.find("onnxruntime").claim(shown)
        assert (str(kind.dtype), [int(size) for size in kind.shape]) == ("float32", [2, 7])
    assert len(opened) == 1
