"""By hand: check_zoo.py FOLDER: every model that write_zoo wrote there passes onnx.checker, runs in onnxruntime, and
keeps the size of its activations: no Conv, Gemm or Add output has a root mean square outside 0.05 .. 50.
Needs the packages onnx, onnxruntime and numpy."""

import pathlib
import sys

import numpy
import onnx
import onnxruntime


def with_inner_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, with the outputs of the ops that could grow or vanish as further outputs."""
    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm", "Add"):
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.output[0]))
    return model


def check(path: pathlib.Path) -> None:
    model = onnx.load(path)
    first = len(model.graph.output)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(with_inner_outputs(model).SerializeToString())
    shape = [dim if isinstance(dim, int) else 1 for dim in session.get_inputs()[0].shape]
    x = numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32)
    sizes = [float(numpy.sqrt(numpy.mean(y * y))) for y in session.run(None, {"x": x})[first:]]
    assert min(sizes) > 0.05 and max(sizes) < 50, (path.name, min(sizes), max(sizes))
    print(f"{path.name}: {len(sizes)} inner outputs, root mean square {min(sizes):.3f} to {max(sizes):.3f}")


if __name__ == "__main__":
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    assert paths, f"no models in {sys.argv[1]}"
    for path in paths:
        check(path)
