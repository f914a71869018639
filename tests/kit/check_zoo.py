"""By hand: check_zoo.py FOLDER: every model that write_zoo wrote there passes onnx.checker, runs in onnxruntime, and
keeps the size of its activations: no Conv, Gemm, MatMul, Add or LayerNormalization output has a root mean square
outside 0.05 .. 50, except scores after the mask of padding, which is nearly infinite.
Needs the packages onnx, onnxruntime and numpy."""

import pathlib
import sys

import numpy
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import text_inputs

GROWING = ("Conv", "Gemm", "MatMul", "Add", "LayerNormalization")


def with_inner_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, with the outputs of the ops that could grow or vanish as further outputs."""
    for node in model.graph.node:
        if node.op_type in GROWING:
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.output[0]))
    return model


def make_inputs(model: onnx.ModelProto) -> dict[str, numpy.ndarray]:
    """Normal pictures, or texts: the table of words is the one that input_ids index."""
    shapes = {one.name: [dim.dim_value or 1 for dim in one.type.tensor_type.shape.dim] for one in model.graph.input}
    if "x" in shapes:
        return {"x": numpy.random.default_rng(1).standard_normal(shapes["x"]).astype(numpy.float32)}
    (table,) = (node.input[0] for node in model.graph.node if node.op_type == "Gather" and node.input[1] == "input_ids")
    (rows,) = (tensor.dims[0] for tensor in model.graph.initializer if tensor.name == table)
    arrays = text_inputs.make_inputs(shapes, rows)
    return {name: numpy.array(array.values(), "<i8").reshape(array.shape) for name, array in arrays.items()}


def size_of(y: numpy.ndarray) -> float:
    """The root mean square, of masked scores that of those that are left."""
    y = y[y > numpy.finfo(numpy.float32).min / 2]
    return float(numpy.sqrt(numpy.mean(numpy.square(y, dtype=numpy.float64))))


def check(path: pathlib.Path) -> None:
    model = onnx.load(path)
    first = len(model.graph.output)
    onnx.checker.check_model(model, full_check=True)
    inputs = make_inputs(model)
    session = onnxruntime.InferenceSession(with_inner_outputs(model).SerializeToString())
    sizes = [size_of(y) for y in session.run(None, inputs)[first:]]
    assert min(sizes) > 0.05 and max(sizes) < 50, (path.name, min(sizes), max(sizes))
    print(f"{path.name}: {len(sizes)} inner outputs, root mean square {min(sizes):.3f} to {max(sizes):.3f}")


if __name__ == "__main__":
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    assert paths, f"no models in {sys.argv[1]}"
    for path in paths:
        check(path)
