"""The shipped digits model is what models/README.md says it is; the oracle is onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

FOLDER = Path(__file__).resolve().parent


def predict(images):
    session = onnxruntime.InferenceSession(FOLDER / "digits.onnx", providers=["CPUExecutionProvider"])
    return session.run(None, {"x": images})[0]


def test_held_out_accuracy():
    images, labels = np.load(FOLDER / "digits_images.npy"), np.load(FOLDER / "digits_labels.npy")
    assert images.shape == (360, 1, 8, 8)
    assert (predict(images).argmax(1) == labels).mean() >= 0.98


def test_batch_is_symbolic():
    images = np.load(FOLDER / "digits_images.npy")
    np.testing.assert_allclose(predict(images[:1])[0], predict(images[:7])[0], rtol=1e-4, atol=1e-6)


def test_form():
    path = FOLDER / "digits.onnx"
    model = onnx.load(path)
    assert path.stat().st_size < 300_000
    assert model.opset_import[0].version == 13
    ops = {node.op_type for node in model.graph.node}
    assert ops == {"Conv", "BatchNormalization", "Relu", "MaxPool", "Flatten", "Gemm", "Softmax"}
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ["n", 1, 8, 8]
