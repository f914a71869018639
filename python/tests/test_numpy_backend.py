"""The backend numpy, and the conformance kit as Python calls it."""

import json
import os
import signal
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest
import support_table
from headrace import relay
from headrace.backends.numpy._ops import OPS
from headrace.backends.numpy._program import Program
from headrace.relay.dataflow_pattern import is_op, wildcard
from support_table import check_table


def passed(case, checks):
    """The JSON of a case that the backend takes, and that passes."""
    return {
        "case": case,
        "claimed": True,
        "checks": checks,
        "findings": [],
        "warnings": [],
        "refusal": "",
        "program": "",
    }


def run_python(*args) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True)


def test_it_passes_the_kit():
    # In a process of its own: other tests register ops, of which the kit would make cases, too.
    checked = run_python("-m", "headrace.backend", "check", "numpy", "--json")
    reports = json.loads(checked.stdout)["cases"]
    assert [(one["case"], one["findings"]) for one in reports if one["findings"]] == []
    assert checked.returncode == 0
    by_case = {one["case"]: one for one in reports}
    claimed = {case.partition("/")[0] for case, one in by_case.items() if one["claimed"]}
    assert set(OPS) <= claimed
    assert {"numpy.dense_bias", "numpy.dense_bias_relu", "structure"} <= claimed
    assert by_case["nn.dense/plain"] == passed("nn.dense/plain", 20)
    assert not by_case["nn.conv2d/plain"]["claimed"]
    # Calls that give their operand are not simplified away before they are placed.
    for case in ("sum/no_axes", "max/all_excluded", "prod/no_axes/int32"):
        assert by_case[case]["claimed"]
    assert by_case["nn.conv2d/plain"]["refusal"] == "it is not an op of this backend"


def test_the_support_table_of_the_readme(request):
    check_table("numpy", bless=request.config.getoption("--bless"))


def test_a_stale_table_is_found_and_written(tmp_path, monkeypatch):
    page = tmp_path / "numpy/README.md"
    page.parent.mkdir()
    text = (support_table.FOLDER / "numpy/README.md").read_text()
    page.write_text(text.replace("| `exp` | 9 of 12 |", "| `exp` | all |"))
    monkeypatch.setattr(support_table, "FOLDER", tmp_path)
    with pytest.raises(AssertionError, match="is out of date: run pytest --bless"):
        check_table("numpy", bless=False)
    check_table("numpy", bless=True)
    assert page.read_text() == text


def test_a_network_of_several_regions(tmp_path):
    path = tmp_path / "network.relay"
    path.write_text("""#[version = "0.0.5"]
def @main(%x: Tensor[(3, 8), float32], %w: Tensor[(5, 8), float32], %b: Tensor[(5), float32]) {
  let %h = nn.relu(nn.bias_add(nn.dense(%x, %w), %b));
  let %p = nn.softmax(cos(erf(%h)));
  (sum(%p, axis=[1]), transpose(%p), concatenate((%p, %h), axis=1))
}
""")
    model = hr.compile(path, backends=["numpy"], output=tmp_path / "network.so")
    rng = np.random.default_rng(3)
    x, w, b = (rng.standard_normal(shape).astype("float32") for shape in ((3, 8), (5, 8), (5,)))
    ran = [one.numpy() for one in hr.load(tmp_path / "network.so", fallback="none")(x, w, b)]
    native = [one.numpy() for one in hr.compile(path)(x, w, b)]
    for got, want in zip(ran, native, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert model.fallbacks == []


X = np.arange(6, dtype="float32").reshape(2, 3) - 2
PAIR = "Tensor[(2, 3), float32]"


def run_marked(body: str, params: str, arrays, before: str = ""):
    """The results of a function that a program marks for numpy, as arrays."""
    hr.backend.find("numpy")
    given = ", ".join(part.partition(":")[0].strip() for part in params.split("%")[1:])
    names = ", ".join(f"%{name}" for name in given.split(", "))
    text = (
        f'#[version = "0.0.5"]\n{before}def @f({params}, Compiler="numpy") {{ {body} }}\n'
        f"def @main({params}) {{ @f({names}) }}\n"
    )
    found = hr.compile(relay.parse(text), fallback="none")(*arrays)
    return [one.numpy() for one in found] if isinstance(found, tuple) else found.numpy()


def test_items_of_nested_tuples():
    nested = "%0 = ((nn.relu(%x), add(%x, %y)), multiply(%x, %y), (exp(%x),));"
    params, arrays = f"%x: {PAIR}, %y: {PAIR}", [X, X + 1]
    np.testing.assert_array_equal(run_marked(f"{nested} negative(%0.1)", params, arrays), -(X * (X + 1)))
    np.testing.assert_array_equal(run_marked(f"{nested} %1 = %0.0; negative(%1.1)", params, arrays), -(X + X + 1))
    np.testing.assert_allclose(run_marked(f"{nested} %1 = %0.2; negative(%1.0)", params, arrays), -np.exp(X), 1e-6)
    first, second = run_marked(f"{nested} %0.0", params, arrays)
    np.testing.assert_array_equal(first, np.maximum(X, 0))
    np.testing.assert_array_equal(second, X + X + 1)


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize(
    ("attrs", "axes"),
    [
        ("axis=[]", ()),
        ("exclude=True", ()),
        ("axis=[0, 1], exclude=True", ()),
        ("axis=[], exclude=True", (0, 1)),
        ("axis=[], keepdims=True", ()),
        ("axis=[-1]", (1,)),
        ("axis=[-1], exclude=True", (0,)),
    ],
)
def test_the_axes_of_reductions(op, attrs, axes):
    want = getattr(np, op)(X, axis=axes) + 1
    np.testing.assert_allclose(run_marked(f"add({op}(%x, {attrs}), 1f)", f"%x: {PAIR}", [X]), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("params", "body", "refusal"),
    [
        ("%x: Tensor[(3), int32], %y: Tensor[(3), int32]", "divide(%x, %y)", "divide: it is computed in float32, "),
        ("%x: Tensor[(2), float32]", "erf(%x)", "erf: it is not an op of this backend"),
        ("%x: Tensor[(2), float32]", "@g(%x)", "the region calls a function"),
        ("%x: Tensor[(2), float32]", "%0 = fn(%a: Tensor[(2), float32]) { %a }; %0(%x)", "the region calls a function"),
        ("%x: Tensor[(2), float32]", "let %v = exp(%x); exp(%v)", "the region holds a Let"),
    ],
)  # fmt: skip
def test_a_marked_region_that_it_does_not_compute(params, body, refusal):
    other = "def @g(%x: Tensor[(2), float32]) { exp(%x) }\n"
    with pytest.raises(hr.UserError, match=f"the backend 'numpy' does not compile the region 'f': {refusal}"):
        run_marked(body, params, [], before=other)


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("nn.softmax(%x, axis=0)", (0, 3)),
        ("nn.softmax(%x, axis=1)", (0, 3)),
        ("nn.log_softmax(%x, axis=0)", (0, 3)),
        ("max(%x, axis=[1])", (0,)),
        ("mean(%x, axis=[])", (0, 3)),
        ("sum(%x, axis=[0])", (3,)),
    ],
)
def test_a_tensor_without_elements(body, shape):
    got = run_marked(body, "%x: Tensor[(0, 3), float32]", [np.zeros((0, 3), "float32")])
    np.testing.assert_array_equal(got, np.zeros(shape))


DENSE = "nn.dense(%a, %w, units=4)"


def run_composite(name: str, body: str):
    params = "Tensor[(2, 3), float32], %{}: Tensor[(4, 3), float32], %{}: Tensor[(4), float32]"
    inner = "%a: " + params.format("w", "b")
    text = f'%0 = fn({inner}, Composite="{name}") {{ {body} }}; %0(%x, %y, %z)'
    weight, bias = np.arange(12, dtype="float32").reshape(4, 3) - 5, np.arange(4, dtype="float32") - 9
    return run_marked(text, "%x: " + params.format("y", "z"), [X, weight, bias]), X @ weight.T + bias


def test_a_composite_function_by_hand():
    got, biased = run_composite("numpy.dense_bias", f"nn.bias_add({DENSE}, %b, axis=-1)")
    np.testing.assert_array_equal(got, biased)
    got, biased = run_composite("numpy.dense_bias_relu", f"nn.relu(nn.bias_add({DENSE}, %b))")
    np.testing.assert_array_equal(got, np.maximum(biased, 0))


@pytest.mark.parametrize(
    ("name", "body", "refusal"),
    [
        ("numpy.dense_bias", f"subtract({DENSE}, %b)", "'numpy.dense_bias' does not compute what this backend means"),
        ("numpy.dense_bias", f"nn.relu(nn.bias_add({DENSE}, %b))", "'numpy.dense_bias' does not compute what"),
        ("numpy.dense_bias_relu", f"nn.bias_add({DENSE}, %b)", "'numpy.dense_bias_relu' does not compute what"),
        ("numpy.dense_bias", f"nn.bias_add({DENSE}, nn.relu(%b))", "'numpy.dense_bias' does not compute what"),
        ("numpy.dense", DENSE, "'numpy.dense' is not a pattern of this backend"),
    ],
)
def test_a_composite_function_that_is_not_what_its_name_says(name, body, refusal):
    with pytest.raises(hr.UserError, match=f"does not compile the region 'f': the function {refusal}"):
        run_composite(name, body)


def test_it_has_no_options():
    program = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { exp(%x) }')
    with pytest.raises(hr.UserError, match="the backend 'numpy' has no option 'speed', and no other"):
        hr.compile(program, backends=["numpy"], backend_options={"numpy": {"speed": 3}})


def program_bytes() -> bytes:
    x, w = (np.arange(6, dtype="float32").reshape(2, 3) for _ in range(2))
    program = Program(1, [x, w], [], [])
    return program.write()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "a constant is cut off"),
        (lambda data: data + b"x", "bytes behind the last constant"),
        (lambda data: b"x" + data[1:], "do not begin as a region"),
        (lambda data: data[:12], "do not begin as a region"),
        (lambda data: data[:20] + b"\xff" + data[21:], "the header is not JSON"),
        (lambda data: data.replace(b'"inputs": 1', b'"inputs": -'), "the header is not JSON"),
        (lambda data: data.replace(b'"inputs"', b'"input_"'), "the header is incomplete"),
        (lambda data: data.replace(b'"inputs": 1', b'"inputs":""'), "should be a number"),
        (lambda data: data.replace(b"float32", b"floot32"), "there is no dtype 'floot32'"),
        (lambda data: data.replace(b'"steps": []', b'"steps": 17'), "17 should be a list"),
        (lambda data: data.replace(b'"steps": []', b'"steps":[1]'), "1 should have the fields op, attrs, args"),
        (lambda data: data.replace(b'"outputs": []', b'"outputs":[9]'), "9 should be a number below 3"),
    ],
)
def test_bytes_that_are_damaged(change, message):
    assert Program.read(program_bytes()).num_values == 3
    with pytest.raises(hr.UserError, match=message):
        Program.read(change(program_bytes()))


def test_a_step_that_is_none():
    header = {"inputs": 1, "constants": [], "steps": [{"op": "none", "attrs": {}, "args": [0]}], "outputs": [1]}
    text = json.dumps(header).encode()
    with pytest.raises(hr.UserError, match="there is no op 'none'"):
        Program.read(b"HRNUMPY1" + len(text).to_bytes(8, "little") + text)
    with pytest.raises(hr.UserError, match="was called with 0 inputs and 0 outputs"):
        Program.read(program_bytes()).run("r", [], [])


class Faulty(hr.backend.Backend):
    """Takes exp, and is wrong in several ways, by the shape of the operand."""

    name = "test_faulty"

    def supports(self, call):
        if call.op.name == "tanh":
            return False
        is_taken = call.op.name == "exp" and call.args[0].checked_type.dtype == "float32"
        return True if is_taken else "is not exp in float32"

    def compile(self, regions, options):
        return [b"exp" for _ in regions]

    def load(self, data):
        def run(name, inputs, outputs):
            if inputs[0].ndim == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if inputs[0].size == 1:
                print("one element")
            outputs[0][...] = np.exp(inputs[0]) if inputs[0].size < 100 else 1

        return run


def test_findings_of_the_kit():
    hr.backend.register(Faulty())
    reports = hr.backend.check("test_faulty", ["exp/*", "tanh/float32", "cos/float32"])
    by_case = {one.case: one for one in reports}
    found = {case: {finding.check for finding in one.findings} for case, one in by_case.items() if one.findings}
    assert found == {
        "exp/scalar": {"crash"},
        "exp/one_element": {"output"},
        "exp/large": {"result"},
        "tanh/float32": {"verdict"},
    }
    (finding,) = by_case["exp/large"].findings
    assert "is right" in finding.message
    assert by_case["exp/large"].program == "def @main(%x: Tensor[(2, 3, 17, 19), float32]) { exp(%x) }\n"
    assert not by_case["cos/float32"].claimed
    with pytest.raises(hr.UserError, match="no case has a name like 'nothing'"):
        hr.backend.check("test_faulty", ["nothing"])
    with pytest.raises(hr.UserError, match="there is no backend 'nobody'"):
        hr.backend.check("nobody")


UNCOMPUTED_OP = """
import headrace as hr
from headrace import relay

op = relay.op.register("test.three", "A user's op that nothing computes.")
op.set_num_inputs(3)
for name in ("a", "b", "c"):
    op.add_argument(name, "Tensor", "a tensor")
op.add_type_rel("three", lambda args, attrs: args[0])


class Takes(hr.backend.Backend):
    name = "test_takes"

    def supports(self, call):
        return True if call.op.name == "test.three" else "it takes test.three"

    def compile(self, regions, options):
        return [b"" for _ in regions]

    def load(self, data):
        return lambda name, inputs, outputs: None


hr.backend.register(Takes())
for report in hr.backend.check("test_takes", ["test.three/*"]):
    print(report.case, report.claimed, [(finding.check, finding.message) for finding in report.findings])
"""


def test_an_op_that_is_claimed_without_a_case():
    done = run_python("-c", UNCOMPUTED_OP)
    assert done.stdout.startswith("test.three/probe True [('case', 'claimed without a case: "), done.stderr


def test_an_alias_names_its_backend():
    try:
        hr.backend.check("onednn", ["add/scalars"])
    except hr.UserError as error:
        pytest.skip(str(error))
    (report,) = hr.backend.check("dnnl", ["add/float32"])
    assert report.claimed
    assert report.findings == []


def test_checks_after_a_model_ran_on_threads(tmp_path):
    path = tmp_path / "model.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(512, 512), float32]) { exp(%x) }\n')
    hr.compile(path, threads=2)(np.zeros((512, 512), "float32"))
    (report,) = hr.backend.check("numpy", ["nn.softmax/last"])
    assert report.claimed
    assert report.findings == []


def test_an_interrupt_ends_the_checks():
    def interrupt(*args):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        # The kit takes longer than that. Python drops an exception of a handler that runs within a callback of a fork.
        signal.setitimer(signal.ITIMER_REAL, 2, 1)
        with pytest.raises(KeyboardInterrupt):
            hr.backend.check("numpy")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ChildProcessError):  # the child has ended, too
        os.waitpid(-1, os.WNOHANG)


def test_the_command_line():
    checked = run_python(
        "-m", "headrace.backend", "check", "numpy", "--case", "nn.softmax/*", "--case", "nn.conv2d/plain"
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.splitlines() == [
        "op or pattern  claimed   checks  result",
        "nn.softmax     18 of 28  240     pass",
        "numpy: 18 of 29 cases claimed, 240 checks, all passed",
    ]
    as_json = run_python("-m", "headrace.backend", "check", "numpy", "--case", "nn.softmax/last", "--json")
    assert json.loads(as_json.stdout) == {
        "backend": "numpy",
        "cases": [passed("nn.softmax/last", 20)],
        "failed": 0,
    }
    nothing = run_python("-m", "headrace.backend", "check", "numpy", "--case", "nn.conv2d/plain")
    assert nothing.returncode == 3
    assert "claims none of the cases" in nothing.stderr
    assert "nothing was checked; most often (1 cases) it says: it is not an op of this backend" in nothing.stdout
    missing = run_python("-m", "headrace.backend", "check", "nobody")
    assert missing.returncode == 3
    assert "there is no backend 'nobody'" in missing.stderr
    assert "numpy" in run_python("-m", "headrace.backend", "list").stdout.split()


def test_the_table_of_patterns_is_one_of_merge_composite():
    table = hr.backend.find("numpy").patterns()
    dense = is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard())
    assert [name for name, *_ in table] == ["numpy.dense_bias_relu", "numpy.dense_bias"]
    assert str(table[1][1]) == str(dense)


class Keeping(hr.backend.Backend):
    """Takes exp, and keeps memory for each of its first loads."""

    def __init__(self, name, num_kept):
        self.name, self.num_kept, self.kept = name, num_kept, []

    def supports(self, call):
        return call.op.name == "exp" or "is not exp"

    def compile(self, regions, options):
        return [b"exp" for _ in regions]

    def load(self, data):
        if len(self.kept) < self.num_kept:
            self.kept.append(bytes(range(200)) * 20)

        def run(name, inputs, outputs):
            outputs[0][...] = np.exp(inputs[0])

        return run


@pytest.mark.parametrize(("num_kept", "found"), [(200, []), (10**6, ["memory"])])
def test_a_cache_that_fills_is_no_leak(num_kept, found):
    name = f"test_keeping_{num_kept}"
    hr.backend.register(Keeping(name, num_kept))
    (report,) = hr.backend.check(name, ["exp/float32"])
    assert [finding.check for finding in report.findings] == found
