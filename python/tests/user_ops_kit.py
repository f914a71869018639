"""Helpers of the suites for ops that Python registers: new ops, programs of them, and their results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, tir, transform  # noqa: E402
from headrace.graph_executor import GraphModule  # noqa: E402

X = np.array([[1, -2, 3], [0.5, 4, -1]], "float32")
_numbers = itertools.count()


def new_op(*arguments: str, relation: Any = "Identity") -> Any:
    """A new op of these arguments."""
    op = relay.op.register(f"usertest.op{next(_numbers)}", "An op of a test.")
    for name in arguments or ("data",):
        op.add_argument(name, "Tensor", f"The {name}.")
    return op.add_type_rel(
        "Identity" if relation == "Identity" else "Of this test", None if relation == "Identity" else relation
    )


def scale() -> Any:
    """data * factor"""
    op = new_op().add_attr("factor", "float", 2.0, "What it is multiplied by.")
    relay.op.register_compute(
        op.name, lambda attrs, inputs, out_type: tir.compute(out_type.shape, lambda *i: inputs[0][i] * attrs.factor)
    )
    return op


def program(call: Any, *shapes: Any) -> Any:
    """A module of `call`, a function of variables."""
    params = [relay.var(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
    return transform.Sequential([relay.transform.InferType()])(
        hr.IRModule.from_expr(relay.Function(params, call(*params)))
    )


def built(mod: Any) -> Any:
    return relay.build(mod, "llvm")


def run(lib: Any, *inputs: Any) -> Any:
    module = GraphModule(lib["default"](hr.cpu()))
    for i, value in enumerate(inputs):
        module.set_input(i, value)
    module.run()
    return module.get_output(0).numpy()


def result(mod: Any, *inputs: Any) -> Any:
    """The result of the program, after a check that interpreter and compiled code give the same."""
    plain = relay.create_executor("debug", mod).evaluate()(*inputs).numpy()
    np.testing.assert_array_equal(run(built(mod), *inputs), plain)
    return plain


def groups(mod: Any) -> list[list[str]]:
    """The ops of each fused group, the groups sorted."""
    fused = relay.transform.FuseOps()(mod)
    found = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relay.Function) and expr.attrs.get("Primitive"):
            found.append(sorted(relay.analysis.list_op_freqs(hr.IRModule.from_expr(expr.without_attr("Primitive")))))

    relay.analysis.post_order_visit(fused["main"], visit)
    return sorted(found)
