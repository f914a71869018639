"""Models whose nodes all have one name: plans and reasons tell their ops apart."""

import json

import headrace as hr
import pytest
from headrace.__main__ import _main
from headrace.backend import Backend
from headrace.relay.dataflow_pattern import is_op, wildcard

OK, USER = 0, 3
SMALL, LARGE = 64, 512


class Pairs(Backend):
    """Takes relu(tanh(_)) as one, which is cheap for 512 rows only."""

    name, version = "same_pairs", "1"

    def patterns(self):
        return [("same_pairs.t", is_op("nn.relu")(is_op("tanh")(wildcard())))]

    def cost(self, call):
        return 1e-9 if call.checked_type.shape[0] == LARGE else 1.0

    def compile(self, regions, options):
        return [b"code" for _ in regions]

    def load(self, data):
        raise ValueError("it is never loaded")


def saved_model(path, *chains: tuple[int, list[str]]) -> str:
    """An ONNX file with a chain of operators for each size; all nodes are named "n"."""
    onnx = pytest.importorskip("onnx")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes, inputs, outputs = [], [], []
    for i, (size, operators) in enumerate(chains):
        values = [f"v{i}_{j}" for j in range(len(operators) + 1)]
        for operator, before, after in zip(operators, values, values[1:], strict=False):
            nodes.append(helper.make_node(operator, [before], [after], name="n"))
        inputs.append(helper.make_tensor_value_info(values[0], float32, [size, size]))
        outputs.append(helper.make_tensor_value_info(values[-1], float32, [size, size]))
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def report(capfd, *words: str) -> dict:
    assert _main([*words, "--json"]) == OK, capfd.readouterr()
    return json.loads(capfd.readouterr().out)


def places(report: dict) -> dict[tuple[str, int], str]:
    """The backend of each op, by its kind and the rows of its result."""
    nodes = [node for node in report["graph"]["nodes"] if node["kind"] == "op"]
    rows = report["placement"]
    return {(node["op"], node["outputs"][0]["shape"][0]): rows[node["placement"]]["backend"] for node in nodes}


def messages(report: dict) -> dict[tuple[str, int], str]:
    nodes = [node for node in report["graph"]["nodes"] if node["kind"] == "op"]
    rows = report["placement"]
    return {(node["op"], node["outputs"][0]["shape"][0]): rows[node["placement"]]["message"] for node in nodes}


@pytest.fixture
def backend():
    hr.backend.register(Pairs(), override=True)
    return Pairs.name


def test_a_plan_puts_the_pair_back_that_it_was_made_for(tmp_path, capfd, backend):
    model = saved_model(tmp_path / "m.onnx", (SMALL, ["Tanh", "Relu"]), (LARGE, ["Tanh", "Relu"]))
    plan = tmp_path / "plan.json"
    by_cost = ("explain", model, "--backends", backend, "--placement", "cost", "--save-plan", str(plan))
    wanted = places(report(capfd, *by_cost))
    assert wanted == {
        ("tanh", SMALL): "native",
        ("nn.relu", SMALL): "native",
        ("tanh", LARGE): backend,
        ("nn.relu", LARGE): backend,
    }
    (row,) = (op for op in json.loads(plan.read_text())["ops"] if op["backend"] == backend)
    assert (row["name"], row["kind"]) == ("n#2", "same_pairs.t")
    assert row["parts"] == [{"name": "n#2", "kind": "tanh"}, {"name": "n#2", "kind": "nn.relu"}]
    assert places(report(capfd, "explain", model, "--plan", str(plan))) == wanted
    compiled = str(tmp_path / "m.so")
    assert _main(["compile", model, "--plan", str(plan), "-o", compiled]) == OK
    capfd.readouterr()
    (region,) = (one for one in report(capfd, "inspect", compiled)["programs"] if one["region"] is not None)
    assert [one["shape"] for one in region["inputs"]] == [[LARGE, LARGE]]


def test_a_plan_with_other_parts_is_an_error(tmp_path, capfd, backend):
    model = saved_model(tmp_path / "m.onnx", (SMALL, ["Tanh", "Relu"]), (LARGE, ["Tanh", "Relu"]))
    saved, wrong = tmp_path / "plan.json", tmp_path / "wrong.json"
    report(capfd, "explain", model, "--backends", backend, "--placement", "cost", "--save-plan", str(saved))
    text = saved.read_text()
    begin = text.index('"parts": ')
    for parts, message in (
        ('"parts": [{"name": "n#2", "kind": "tanh"}, {"name": "n", "kind": "nn.relu"}]',
         "the pattern same_pairs.t does not match these ops as one"),
        ('"parts": [{"name": "n#3", "kind": "tanh"}, {"name": "n#2", "kind": "nn.relu"}]',
         "the model has no op 'n#3' of kind tanh"),
    ):  # fmt: skip
        wrong.write_text(text[:begin] + parts + text[text.index("]", begin) + 1 :])
        assert _main(["compile", model, "--plan", str(wrong), "-o", str(tmp_path / "m.so")]) == USER
        line = text[:begin].count("\n") + 1
        column = begin - text.rindex("\n", 0, begin) + len('"parts": [')
        assert f"wrong.json:{line}:{column}: {message}" in capfd.readouterr().err
    old = text.replace('"version": 2', '"version": 1').replace(text[begin : text.index("]", begin) + 3], "")
    wrong.write_text(old)
    assert _main(["explain", model, "--plan", str(wrong)]) == USER
    assert 'the row of the pattern same_pairs.t does not list the ops that it has as "parts"' in capfd.readouterr().err


def test_a_reason_names_patterns_of_its_own_op_only(tmp_path, capfd, backend):
    model = saved_model(tmp_path / "m.onnx", (SMALL, ["Tanh", "Relu"]), (128, ["Neg", "Relu"]))
    words = ("explain", model, "--backends", backend, "--placement", "cost")
    said = messages(report(capfd, *words))
    pattern = "the pattern same_pairs.t, which takes it, costs 1 s by same_pairs"
    assert pattern in said["nn.relu", SMALL]
    assert pattern not in said["nn.relu", 128]
    assert pattern not in said["negative", 128]
