"""Trains and exports models/digits.onnx, the model of `./dev demo`.

A small convolutional network on the UCI optical digits that scikit-learn ships (1,797 images of 8x8 pixels with 17
grey levels). The training is plain numpy so that nothing but numpy, scikit-learn and onnx is needed to make it again:

    ./dev python models/train_digits.py

writes digits.onnx, digits_images.npy (held-out images, f32[360,1,8,8] in 0..1) and digits_labels.npy (i64[360])
beside this file. It stops with an error when onnxruntime's accuracy on the held-out images is under 98 %.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 20250
HELD_OUT = 360
EPOCHS = 40
BATCH = 64
LEARNING_RATE = 2e-3
MIN_ACCURACY = 0.98
BN_EPSILON = 1e-5
BN_MOMENTUM = 0.9  # the share of the running statistics that a batch leaves in place
OUT_DIR = Path(__file__).resolve().parent


class Conv:
    """3x3 convolution, stride 1, padding 1, no bias (a batch norm follows). x f32[N,C,8,8] -> f32[N,K,8,8]."""

    def __init__(self, rng: np.random.Generator, channels_in: int, channels_out: int) -> None:
        scale = np.sqrt(2.0 / (9 * channels_in))
        self.weight = (rng.standard_normal((channels_out, channels_in, 3, 3)) * scale).astype(np.float32)
        self.params = ["weight"]

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        # windows[n,c,h,w,r,s]: a view, so im2col costs one copy, made by the reshape.
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        n, c, h, w = x.shape
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        out = self.columns @ self.weight.reshape(len(self.weight), -1).T
        return out.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        n, c, h, w = self.shape
        rows = grad.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.grads = [(rows.T @ self.columns).reshape(self.weight.shape)]
        patches = (rows @ self.weight.reshape(len(self.weight), -1)).reshape(n, h, w, c, 3, 3)
        padded = np.zeros((n, c, h + 2, w + 2), np.float32)
        for r in range(3):
            for s in range(3):
                padded[:, :, r : r + h, s : s + w] += patches[:, :, :, :, r, s].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]


class BatchNorm:
    """Normalises each channel over batch and pixels; keeps running statistics for inference."""

    def __init__(self, channels: int) -> None:
        self.gamma = np.ones(channels, np.float32)
        self.beta = np.zeros(channels, np.float32)
        self.mean = np.zeros(channels, np.float32)
        self.var = np.ones(channels, np.float32)
        self.params = ["gamma", "beta"]

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        mean, var = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if train else (self.mean, self.var)
        if train:
            self.mean = BN_MOMENTUM * self.mean + (1 - BN_MOMENTUM) * mean
            self.var = BN_MOMENTUM * self.var + (1 - BN_MOMENTUM) * var
        self.inverse_std = 1 / np.sqrt(var + BN_EPSILON)
        self.normal = (x - per_channel(mean)) * per_channel(self.inverse_std)
        return self.normal * per_channel(self.gamma) + per_channel(self.beta)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        axes = (0, 2, 3)
        count = grad.size // grad.shape[1]
        self.grads = [(grad * self.normal).sum(axes), grad.sum(axes)]
        grad_gamma, grad_beta = self.grads
        centred = grad - per_channel(grad_beta / count) - self.normal * per_channel(grad_gamma / count)
        return centred * per_channel(self.gamma * self.inverse_std)


class Relu:
    params: list[str] = []
    grads: list[np.ndarray] = []

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.positive = x > 0
        return x * self.positive

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.positive


class MaxPool:
    """2x2, stride 2. A tie sends its gradient to every maximum of the window; ties are rare after a convolution."""

    params: list[str] = []
    grads: list[np.ndarray] = []

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        out = blocks.max((3, 5))
        self.is_max = blocks == out[:, :, :, None, :, None]
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        spread = self.is_max * grad[:, :, :, None, :, None]
        n, c, h, _, w, _ = spread.shape
        return spread.reshape(n, c, 2 * h, 2 * w)


class Flatten:
    params: list[str] = []
    grads: list[np.ndarray] = []

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.shape)


class Dense:
    """x f32[N,I] -> f32[N,O]; weight f32[O,I] as Gemm with transB reads it."""

    def __init__(self, rng: np.random.Generator, size_in: int, size_out: int) -> None:
        self.weight = (rng.standard_normal((size_out, size_in)) * np.sqrt(2.0 / size_in)).astype(np.float32)
        self.bias = np.zeros(size_out, np.float32)
        self.params = ["weight", "bias"]

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.grads = [grad.T @ self.x, grad.sum(0)]
        return grad @ self.weight


class Adam:
    """Kingma and Ba 2015 with their constants."""

    def __init__(self, layers: list) -> None:
        self.slots = [(layer, name, i) for layer in layers for i, name in enumerate(layer.params)]
        self.first = [np.zeros_like(getattr(layer, name)) for layer, name, _ in self.slots]
        self.second = [np.zeros_like(m) for m in self.first]
        self.steps = 0

    def step(self, rate: float) -> None:
        self.steps += 1
        for (layer, name, i), m, v in zip(self.slots, self.first, self.second, strict=True):
            grad = layer.grads[i]
            m += 0.1 * (grad - m)
            v += 0.001 * (grad * grad - v)
            m_hat, v_hat = m / (1 - 0.9**self.steps), v / (1 - 0.999**self.steps)
            setattr(layer, name, (getattr(layer, name) - rate * m_hat / (np.sqrt(v_hat) + 1e-8)).astype(np.float32))


def per_channel(values: np.ndarray) -> np.ndarray:
    return values[None, :, None, None]


def make_layers(rng: np.random.Generator) -> list:
    return [
        *(Conv(rng, 1, 16), BatchNorm(16), Relu()),
        *(Conv(rng, 16, 32), BatchNorm(32), Relu(), MaxPool()),
        *(Conv(rng, 32, 32), BatchNorm(32), Relu(), MaxPool()),
        *(Flatten(), Dense(rng, 128, 64), Relu(), Dense(rng, 64, 10)),
    ]


def forward(layers: list, x: np.ndarray, train: bool) -> np.ndarray:
    for layer in layers:
        x = layer.forward(x, train)
    return x


def load_split(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, then held-out ones; images f32[N,1,8,8] in 0..1."""
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    images = (digits.images[order] / 16.0).astype(np.float32)[:, None]
    labels = digits.target[order].astype(np.int64)
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


def shift_randomly(rng: np.random.Generator, images: np.ndarray) -> np.ndarray:
    """Moves each image by at most one pixel; the shape of a digit does not depend on its place."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = rng.integers(0, 3, (2, len(images)))
    return np.stack([p[:, r : r + 8, c : c + 8] for p, r, c in zip(padded, rows, columns, strict=True)])


def train(layers: list, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> None:
    adam = Adam(layers)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        loss_sum = 0.0
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            logits = forward(layers, shift_randomly(rng, images[batch]), train=True)
            shifted = np.exp(logits - logits.max(1, keepdims=True))
            grad = shifted / shifted.sum(1, keepdims=True)
            rows = np.arange(len(batch))
            loss_sum -= float(np.log(grad[rows, labels[batch]]).sum())
            grad[rows, labels[batch]] -= 1
            grad = (grad / len(batch)).astype(np.float32)
            for layer in reversed(layers):
                grad = layer.backward(grad)
            adam.step(rate)
        print(f"epoch {epoch + 1:2d}/{EPOCHS}  training loss {loss_sum / len(images):.4f}", flush=True)


def export_layers(layers: list) -> tuple[list, list]:
    """ONNX nodes and initializers of the layers, a softmax last; names carry the layer's number."""
    nodes, initializers, value = [], [], "x"

    def constant(name: str, array: np.ndarray) -> str:
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(op: str, inputs: list[str], **attributes: object) -> str:
        name = f"{op.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    for i, layer in enumerate(layers):
        match layer:
            case Conv():
                value = add("Conv", [value, constant(f"w{i}", layer.weight)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            case BatchNorm():
                fields = ["gamma", "beta", "mean", "var"]
                inputs = [constant(f"{field}{i}", getattr(layer, field)) for field in fields]
                value = add("BatchNormalization", [value, *inputs], epsilon=BN_EPSILON)
            case Relu():
                value = add("Relu", [value])
            case MaxPool():
                value = add("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
            case Flatten():
                value = add("Flatten", [value], axis=1)
            case Dense():
                inputs = [value, constant(f"w{i}", layer.weight), constant(f"b{i}", layer.bias)]
                value = add("Gemm", inputs, transB=1)
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], name="softmax", axis=1))
    return nodes, initializers


def make_model(layers: list) -> onnx.ModelProto:
    nodes, initializers = export_layers(layers)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    model.producer_name = "headrace models/train_digits.py"
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    rng = np.random.default_rng(SEED)
    train_images, train_labels, held_images, held_labels = load_split(rng)
    layers = make_layers(rng)
    train(layers, train_images, train_labels, rng)

    path = OUT_DIR / "digits.onnx"
    onnx.save(make_model(layers), path)
    np.save(OUT_DIR / "digits_images.npy", held_images)
    np.save(OUT_DIR / "digits_labels.npy", held_labels)

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    accuracy = float((session.run(None, {"x": held_images})[0].argmax(1) == held_labels).mean())
    own = float((forward(layers, held_images, train=False).argmax(1) == held_labels).mean())
    params = sum(getattr(layer, name).size for layer in layers for name in layer.params)
    print(f"{params} parameters, {path.stat().st_size} bytes; held-out accuracy {accuracy:.4f} (numpy {own:.4f})")
    if accuracy < MIN_ACCURACY:
        raise SystemExit(f"held-out accuracy {accuracy:.4f} is under {MIN_ACCURACY}: change the seed or the training")


if __name__ == "__main__":
    main()
