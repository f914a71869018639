"""A backend in Python: elementwise ops of float32, computed by numpy."""

import json
from typing import Any

import numpy as np
from headrace import UserError, relay
from headrace.backend import Backend, Region

OPS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "exp": np.exp, "tanh": np.tanh}


class Elementwise(Backend):
    name = "elementwise"
    version = "1"

    def supports(self, call: Any) -> bool | str:
        if call.op.name not in OPS:
            return f"it is not one of {', '.join(OPS)}"
        if any(arg.checked_type.dtype != "float32" for arg in call.args):
            return "it is not of float32"
        return True

    def compile(self, regions: list[Region], options: dict[str, Any]) -> list[bytes | str]:
        if options:
            raise UserError(f"the backend elementwise has no option {', '.join(options)}")
        return [self.compile_region(region.function) for region in regions]

    def compile_region(self, function: Any) -> bytes | str:
        """A region as JSON, whose values have numbers: inputs, then constants, then what each step computes."""
        nodes: list[Any] = []
        relay.analysis.post_order_visit(function.body, nodes.append)
        constants = [one for one in nodes if isinstance(one, relay.Constant)]
        calls = [one for one in nodes if isinstance(one, relay.Call)]
        if refusals := [answer for answer in map(self.supports, calls) if answer is not True]:
            return refusals[0]  # nobody asked about a region that a program marks
        number = {node: i for i, node in enumerate([*function.params, *constants, *calls])}
        results = function.body.fields if isinstance(function.body, relay.Tuple) else [function.body]
        program = {
            "constants": [[list(one.data.shape), one.data.numpy().ravel().tolist()] for one in constants],
            "steps": [[call.op.name, [number[arg] for arg in call.args]] for call in calls],
            "results": [number[one] for one in results],
        }
        return json.dumps(program).encode()

    def load(self, data: bytes) -> Any:
        program = json.loads(data)
        constants = [np.array(values, "float32").reshape(shape) for shape, values in program["constants"]]
        steps, results = program["steps"], program["results"]
        if not all(op in OPS for op, _ in steps):
            raise ValueError("a step is not one of the ops")

        def run(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
            values = [*inputs, *constants]
            for op, operands in steps:
                values.append(OPS[op](*(values[i] for i in operands)))
            for output, number in zip(outputs, results, strict=True):
                output[...] = values[number]

        return run
