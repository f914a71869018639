"""headrace.from_torch: modules of PyTorch to compiled models."""

from __future__ import annotations

import sys

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
torch = pytest.importorskip("torch", reason="PyTorch is not installed (docs/torch.md says how)")
pytest.importorskip("onnxscript", reason="onnxscript, which torch's ONNX exporter needs, is not installed")
import torch_kit  # noqa: E402
from torch import nn  # noqa: E402

CLOSE = {"rtol": 1e-4, "atol": 1e-4}  # sums of at most some thousand float32 products, in another order


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


class Scaled(nn.Module):
    """Takes f32[N,4] and f32[4] or f32[N,4]; gives a dict of a tensor and a tuple."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x, *, scale=None):
        out = self.layer(x if scale is None else x * scale)
        return {"out": out, "more": (out.sum(1), x.shape[1] * out)}


@pytest.mark.parametrize("make", [torch_kit.residual_network, torch_kit.mobile_network])
def test_an_image_network(make):
    module = torch_kit.settled(make())
    x = torch.randn(2, 3, 64, 64)
    f = hr.from_torch(module, (x,))
    assert isinstance(f, hr.CompiledModel)
    assert [(spec.name, spec.shape) for spec in f.inputs] == [("input", (2, 3, 64, 64))]
    np.testing.assert_allclose(f(x).numpy(), module(x).detach().numpy(), **CLOSE)


def test_a_transformer():
    module = torch_kit.settled(torch_kit.Encoder())
    ids = torch.randint(1, 50, (2, 12))
    ids[1, 8:] = 0
    f = hr.from_torch(module, ids)
    for result, expected in zip(f(ids), module(ids).values(), strict=True):
        np.testing.assert_allclose(result.numpy(), expected.detach().numpy(), **CLOSE)


def test_outputs_in_trees_and_inputs_by_name():
    module = Scaled().eval()
    x, scale = torch.randn(2, 4), torch.randn(4)
    f = hr.from_torch(module, x, {"scale": scale})
    assert [spec.name for spec in f.inputs] == ["x", "scale"]
    expected = module(x, scale=scale)
    for result, tensor in zip(f(x, scale), (expected["out"], *expected["more"]), strict=True):
        np.testing.assert_allclose(result.numpy(), tensor.detach().numpy(), **CLOSE)


def test_open_dimensions_have_the_sizes_of_the_example_or_of_dims():
    module = Scaled().eval()
    x, scale = torch.randn(2, 4), torch.randn(2, 4)
    dynamic = {"scale": {0: "batch"}, "x": {0: torch.export.Dim("batch")}}
    f = hr.from_torch(module, (x,), {"scale": scale}, dynamic={name: dynamic[name] for name in ("x", "scale")})
    assert [spec.shape for spec in f.inputs] == [(2, 4), (2, 4)]
    f = hr.from_torch(module, (x,), {"scale": scale}, dynamic={"x": {0: "n"}, "scale": {0: "n"}}, dims={"n": 7})
    assert [spec.shape for spec in f.inputs] == [(7, 4), (7, 4)]
    x, scale = torch.randn(7, 4), torch.randn(7, 4)
    expected = module(x, scale=scale)["out"].detach().numpy()
    np.testing.assert_allclose(f(x, scale)[0].numpy(), expected, **CLOSE)


def test_options_reach_the_compiler(tmp_path):
    x = torch.randn(2, 4)
    f = hr.from_torch(nn.Linear(4, 3).eval(), x, threads=1, output=tmp_path / "linear.so")
    assert f.threads == 1
    np.testing.assert_array_equal(hr.load(tmp_path / "linear.so")(x).numpy(), f(x).numpy())


class Counter(nn.Module):
    """Counts its calls in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


class Mixed(nn.Module):
    """Gives a tensor and a number."""

    def forward(self, x):
        return x * 2, 5


class Bessel(nn.Module):
    """An op that torch's exporter does not know."""

    def forward(self, x):
        return torch.special.bessel_j0(x)


class Branch(nn.Module):
    """Control flow that depends on data."""

    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (nn.Dropout(0.5), r"Dropout cannot be compiled: it draws random numbers \(aten\..*model\.eval\(\) first"),
        (nn.BatchNorm1d(4), r"it writes to its inputs or buffers \(running_mean, .*model\.eval\(\) first"),
        (Counter().eval(), r"it writes to its inputs or buffers \(calls\)"),
        (Mixed().eval(), r"its output 1 is not a tensor \(5\); return tensors only"),
        (Bessel().eval(), r"torch's ONNX exporter refuses it: .*bessel_j0"),
        (Branch().eval(), r"torch\.export refuses it: "),
        (lambda x: x, r"module: expected a torch\.nn\.Module, got function"),
    ],
)
def test_what_cannot_be_compiled_is_an_error(module, match):
    with pytest.raises(hr.UserError, match=match):
        hr.from_torch(module, torch.randn(2, 4))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"thread": 2}, "options: there is no option 'thread'; did you mean 'threads'"),
        ({"threads": "two"}, "^threads: expected an int, got 'two'"),
        ({"kwargs": [1]}, "kwargs: expected a dict by name"),
        ({"dynamic": "batch"}, r"dynamic: expected a dict by input, as in .*, got 'batch'"),
        ({"dynamic": {"input": {0: "my batch"}}}, "dynamic: expected a name like 'batch' for a dimension"),
        ({"dynamic": {"input": {1: "features"}}}, r"torch\.export refuses it: "),
        ({"dims": {"batch": 3}}, "a size is given for dimension 'batch'"),
        ({"dims": {"batch": "x"}}, "dims: 'batch': expected an int, got 'x'"),
    ],
)
def test_bad_arguments_are_errors(arguments, match):
    with pytest.raises(hr.UserError, match=match):
        hr.from_torch(nn.Linear(4, 3).eval(), torch.randn(2, 4), **arguments)


def test_args_that_are_no_tuple():
    with pytest.raises(hr.UserError, match="args: expected a tuple of tensors, got int"):
        hr.from_torch(nn.Linear(4, 3), 5)


def test_without_torch_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it fails then
    with pytest.raises(hr.MissingError, match=r"pip install '\.\[torch\]'"):
        hr.from_torch(None)
