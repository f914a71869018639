"""Ops that give a tuple: Python knows how many results each call has, so that `a, b = relay.unique(x)` works."""

from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace.relay import _op_table  # noqa: E402

OP_CASES = Path(__file__).resolve().parents[2] / "src/ops/tests/op_cases.txt"


def calls_of_the_op_cases():
    """The calls of ops in the cases of `ops_test`, with types; cases whose types are refused are left out."""
    calls = []
    for line in OP_CASES.read_text().splitlines():
        if not line.startswith("program "):
            continue
        try:
            program = relay.testing.run_infer_type(relay.parse_expr(line.removeprefix("program ")))
        except hr.UserError:
            continue
        relay.analysis.post_order_visit(
            program, lambda node: calls.append(node) if isinstance(node, relay.Call) else None
        )
    return [call for call in calls if isinstance(call.op, hr.ir.Op)]


def test_the_table_has_every_op_that_gives_a_tuple():
    counted = {}
    for call in calls_of_the_op_cases():
        if call.op.name == "annotation.checkpoint":  # a plain call, as in Relay: it has the type of its argument
            continue
        row = _op_table.RESULTS.get(call.op.name)
        attrs = {key: call.attrs[key] for key in call.attrs.keys()} if call.attrs else {}  # noqa: SIM118
        found = row(attrs, call.args) if callable(row) else row
        is_tuple = isinstance(call.checked_type, hr.ir.TupleType)
        expected = len(call.checked_type.fields) if is_tuple else 0
        assert (found or 0) == expected, f"{call.op.name}: RESULTS gives {found}, its type has {expected} fields"
        counted.setdefault(call.op.name, expected)
    assert {name: counted[name] for name in ("nn.relu", "nn.batch_norm", "topk", "memory.kill")} == {
        "nn.relu": 0,
        "nn.batch_norm": 3,
        "topk": 2,
        "memory.kill": 0,
    }
    assert set(_op_table.RESULTS) <= set(counted), "a row for an op without cases, or for no op"


def test_argwhere_bounded_gives_rows_and_their_number():
    x = relay.var("x", shape=(2, 2))
    rows, count = relay.argwhere_bounded(x)
    run = relay.create_executor().evaluate(relay.Function([x], relay.Tuple([rows, count])))
    found = run(np.array([[0, 3], [0, 5]], "float32"))
    np.testing.assert_array_equal(found[0].numpy()[:2], [[0, 1], [1, 1]])
    assert found[1].numpy().tolist() == [2]
