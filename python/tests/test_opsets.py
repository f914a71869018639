"""Which opset brought which operator, compared with the onnx package."""

import headrace as hr
import pytest
from onnx import defs, helper

# The importer's limits, and operators that it takes in any opset, as older exporters and onnxruntime's optimiser write.
OLDEST, NEWEST = 6, 25
IN_ANY_OPSET = {"LayerNormalization", "ThresholdedRelu"}


def first_opsets():
    first = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            first[schema.name] = min(schema.since_version, first.get(schema.name, NEWEST + 1))
    return first


def error_of(operator, opset):
    """The error of a model of one node; the node has no inputs, so that there always is one."""
    graph = helper.make_graph(
        [helper.make_node(operator, [], ["y"])], "g", [], [helper.make_tensor_value_info("y", 1, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    with pytest.raises(hr.UserError) as caught:
        hr.compile(model)
    return str(caught.value)


def test_operators_are_refused_in_opsets_before_theirs():
    newer = {name: opset for name, opset in first_opsets().items() if OLDEST < opset <= NEWEST}
    refused = set()
    for name, opset in newer.items():
        if "the operator is not supported" in (error := error_of(name, opset - 1)):
            continue
        asked = f"the operator exists since opset {opset}, but the model imports opset {opset - 1}"
        assert (asked in error) == (name not in IN_ANY_OPSET), error
        assert "exists since" not in error_of(name, opset)
        refused.add(name)
    assert len(refused) == 81, "docs/onnx-support.md lists the operators"
