"""The format of op_cases.txt; see op_cases.h, which reads it."""

import numpy as np
import onnxruntime
import op_case_file
from onnx import helper

lines: list[str] = []
names: set[str] = set()


class Numbers:
    """Numbers of the cases: a sequence of a family's own, so that a new case changes no other family's."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def data(self, *shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
        """Multiples of 1/8: exact in float16, and sums of products exact in float32."""
        return (np.round(self.rng.uniform(low, high, shape) * 8) / 8).astype(np.float32)

    def ints(self, *shape: int, low: int = -5, high: int = 5, dtype: str = "int32") -> np.ndarray:
        return self.rng.integers(low, high, shape).astype(dtype)


def scalar(value: float, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


def type_text(x: np.ndarray) -> str:
    return f"Tensor[({', '.join(str(d) for d in x.shape)}), {x.dtype}]"


def tensor_line(word: str, x: np.ndarray) -> str:
    numbers = (repr(float(v)) if x.dtype.kind == "f" else str(int(v)) for v in x.ravel())
    return f"{word} {x.dtype} {x.ndim} {' '.join(str(d) for d in x.shape)} {' '.join(numbers)}".rstrip()


def begin(kind: str, name: str, call: str, inputs: list[np.ndarray]) -> None:
    assert (kind, name) not in names, name
    names.add((kind, name))
    params = ", ".join(f"%x{k}: {type_text(x)}" for k, x in enumerate(inputs))
    for k in range(len(inputs)):
        call = call.replace(f"%{k}", f"%x{k}")
    lines.append(f"{kind} {name}")
    lines.append(f"program fn ({params}) {{ {call} }}")


def case(name: str, call: str, inputs: list[np.ndarray], outputs: list[np.ndarray], tolerance: float = 0) -> None:
    begin("case", name, call, inputs)
    lines.append(f"tolerance {tolerance}")
    lines.extend(tensor_line("in", np.asarray(x)) for x in inputs)
    lines.extend(tensor_line("out", np.asarray(x)) for x in outputs)
    lines.append("end")


def error(name: str, call: str, inputs: list[np.ndarray], message: str, run: bool = False) -> None:
    """With `run` the call is refused when it runs, else when it is typed."""
    begin("error", name, call, inputs)
    lines.append(f"message {message}")
    if run:
        lines.extend(tensor_line("in", np.asarray(x)) for x in inputs)
    lines.append("end")


def run_onnx_node(
    op: str, inputs: list[np.ndarray], results: list[str], opset: int = 13, domain: str = "", **attrs: object
) -> list[np.ndarray]:
    """The results of an ONNX operator, for which the caller has names; `domain` is of one that ONNX itself lacks."""
    names_in = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names_in, results, domain=domain, **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names_in, inputs, strict=True)
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names_in, inputs, strict=True)))


def run_onnx(op: str, inputs: list[np.ndarray], opset: int = 13, **attrs: object) -> np.ndarray:
    """The first result of an ONNX operator."""
    return run_onnx_node(op, inputs, ["y"], opset, **attrs)[0]


def finish() -> None:
    op_case_file.write(lines)
