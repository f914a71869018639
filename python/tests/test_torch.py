"""torch.compile(model, backend="headrace"): graphs of PyTorch that run compiled, and those that PyTorch runs itself."""

from __future__ import annotations

import os
import subprocess
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
torch = pytest.importorskip("torch", reason="PyTorch is not installed (docs/torch.md says how)")
pytest.importorskip("onnxscript", reason="onnxscript, which torch's ONNX exporter needs, is not installed")
import torch_kit  # noqa: E402
from headrace import compiler  # noqa: E402
from headrace import torch as hr_torch  # noqa: E402
from headrace.torch import FallbackWarning, _attention, _region  # noqa: E402
from torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error::headrace.torch.FallbackWarning")
ROOT = Path(__file__).parents[2]
CLOSE = {"rtol": 1e-4, "atol": 1e-4}  # sums of at most some thousand float32 products, in another order
EXACT = {"rtol": 0, "atol": 0}


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(3)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def models(monkeypatch):
    """The models that Headrace compiles in a test: proof that it, and not PyTorch, computed."""
    made = []
    compile_file = compiler.compile

    def compile(*args, **kwargs):
        made.append(compile_file(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(compiler, "compile", compile)
    return made


def compiled(module, **kwargs):
    return torch.compile(module, backend=hr_torch.backend, **kwargs)


def close(result, expected, **tolerance):
    torch.testing.assert_close(result, expected, **(tolerance or CLOSE))


def falls_back(function, *args, match):
    """Returns the result of a compiled function that PyTorch computes after one warning with that text."""
    with pytest.warns(FallbackWarning, match=match) as told:
        result = compiled(function)(*args)
    assert len([one for one in told if one.category is FallbackWarning]) == 1
    return result


def test_nothing_imports_torch_before_it_is_needed():
    program = "import sys, headrace.torch; headrace.from_torch; print('torch' in sys.modules, 'onnx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_package_offers_the_backend_by_its_name(tmp_path):
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "headrace-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headrace\nVersion: 0\n")
    lines = [f"[{group}]\n" + "".join(f"{name} = {it}\n" for name, it in own.items()) for group, own in points.items()]
    (info / "entry_points.txt").write_text("".join(lines))
    program = (
        "import torch\n"
        "assert 'headrace' in torch._dynamo.list_backends()\n"
        "f = torch.compile(lambda x: x * 2 + 1, backend='headrace', options={'threads': 1})\n"
        "print(f(torch.arange(3.0)).tolist())\n"
    )
    path = os.pathsep.join([str(tmp_path), *(one for one in sys.path if one)])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "error::UserWarning:headrace.torch._region"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "[1.0, 3.0, 5.0]", done.stderr


@torch.no_grad()
def test_a_residual_network(models):
    module = torch_kit.settled(torch_kit.residual_network())
    x = torch.randn(2, 3, 64, 64)
    close(compiled(module)(x), module(x))
    assert [len(model.inputs) for model in models] == [1], "the weights are constants of one model"


@torch.no_grad()
def test_a_mobile_network(models):
    module = torch_kit.settled(torch_kit.mobile_network())
    x = torch.randn(2, 3, 64, 64)
    close(compiled(module)(x), module(x))
    assert [len(model.inputs) for model in models] == [1]


@torch.no_grad()
def test_a_transformer(models):
    module = torch_kit.settled(torch_kit.Encoder())
    ids = torch.randint(1, 50, (2, 12))
    ids[1, 8:] = 0
    result = compiled(module)(ids)
    assert list(result) == ["hidden", "logits"]
    close(result, module(ids))
    assert [[spec.dtype for spec in model.inputs] for model in models] == [["int64"]]


PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
CAUSAL = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)


@pytest.mark.parametrize("masks", [{}, {"key_padding_mask": PADDING}, {"attn_mask": CAUSAL}], ids=str)
@pytest.mark.parametrize("more", [{}, {"need_weights": False}, {"average_attn_weights": False}], ids=str)
@torch.no_grad()
def test_the_plain_form_of_attention(monkeypatch, masks, more):
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    expected = module(x, x, x, **masks, **more)
    calls = []

    def plain(*args, **kwargs):
        calls.append(args)
        return _attention.multi_head_attention(*args, **kwargs)

    monkeypatch.setattr(torch, "_native_multi_head_attention", plain)
    result = module(x, x, x, **masks, **more)
    assert len(calls) == 1
    close(result, expected)


@pytest.mark.parametrize("masks", [{}, {"src_key_padding_mask": PADDING}, {"src_mask": CAUSAL}], ids=str)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@torch.no_grad()
def test_the_plain_form_of_an_encoder_layer(monkeypatch, masks, norm_first, activation):
    module = nn.TransformerEncoderLayer(8, 2, 16, 0.1, activation, batch_first=True, norm_first=norm_first).eval()
    x = torch.randn(2, 5, 8)
    expected = module(x, **masks)
    calls = []

    def plain(*args, **kwargs):
        calls.append(args)
        return _attention.encoder_layer(*args, **kwargs)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", plain)
    result = module(x, **masks)
    assert len(calls) == 1
    close(result, expected)


def test_several_outputs_in_tuples_dicts_and_numbers(models):
    def f(x, ids):
        total = x.sum(1)
        return {"parts": (x * 2, total), "total": total, "picked": x[ids], "more": x > 0}, x.shape[0] + 1, None

    x, ids = torch.randn(4, 3), torch.tensor([2, 0])
    result = compiled(f)(x, ids)
    close(result, f(x, ids))
    assert result[0]["picked"].dtype == torch.float32
    assert result[0]["more"].dtype == torch.bool
    assert len(models) == 1


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float64, torch.float16, torch.bfloat16])
def test_dtypes(models, dtype):
    def f(x):
        return x + x, x.to(torch.float32) * 0.5

    x = torch.arange(12).reshape(3, 4).to(dtype)
    close(compiled(f)(x), f(x), **EXACT)
    assert len(models) == 1


# By default the graph for the first size stays hidden behind the one for symbolic sizes, which compiles it again.
@pytest.mark.parametrize(("dynamic", "sizes"), [(None, [4, 2, 6, 4]), (True, [4, 2, 6]), (False, [4, 2, 6])])
def test_a_batch_that_changes(models, dynamic, sizes):
    def f(x):
        return torch.relu(x @ x.T) + x.shape[0]

    fast = compiled(f, dynamic=dynamic)
    for rows in (4, 2, 6, 4, 2, 6):
        x = torch.randn(rows, 3)
        close(fast(x), f(x))
    assert [model.inputs[0].shape[0] for model in models] == sizes


def test_more_sizes_than_models_are_kept(models, monkeypatch):
    monkeypatch.setattr(_region, "_KEPT_MODELS", 2)
    fast = compiled(lambda x: x * 2 + x.shape[0], dynamic=True)
    xs = [torch.randn(rows) for rows in (3, 4, 5)]
    close(fast(xs[0]), xs[0] * 2 + 3)
    close(fast(xs[1]), xs[1] * 2 + 4)
    with pytest.warns(FallbackWarning, match="it keeps 2 compiled models, for other sizes or weights; pad its inputs"):
        close(fast(xs[2]), xs[2] * 2 + 5)
    close(fast(xs[0]), xs[0] * 2 + 3)
    assert len(models) == 2


def test_inputs_that_are_views(models):
    x = torch.arange(24.0).reshape(2, 3, 4)
    fast = compiled(lambda x: x * 2)
    for view in (x.transpose(0, 2), x[:, ::2], x[:1].expand(2, 3, 4), x[..., 1], x.contiguous()):
        close(fast(view), view * 2, **EXACT)
    assert {tuple(model.inputs[0].shape) for model in models} == {(4, 3, 2), (2, 2, 4), (2, 3, 4), (2, 3)}


def test_a_view_that_negates(models):
    x = torch.complex(torch.ones(3), torch.arange(3.0)).conj().imag
    assert x.is_neg()
    close(compiled(lambda x: x * 2)(x), torch.tensor([0.0, -2.0, -4.0]), **EXACT)
    assert len(models) == 1


def test_no_elements(models):
    result = compiled(lambda x: x[:0] * 2)(torch.randn(4, 3))
    assert result.shape == (0, 3)
    assert len(models) == 1


@torch.inference_mode()
def test_inference_mode(models):
    x = torch.randn(4, 6)
    module = nn.Linear(6, 3)  # its parameters are inference tensors, whose changes PyTorch does not count
    fast = compiled(module)
    close(fast(x), module(x))
    module.weight.mul_(2)
    close(fast(x), module(x))
    assert [len(model.inputs) for model in models] == [3]


def test_no_grad_within_the_function(models):
    module = nn.Linear(6, 3)

    def f(x):
        with torch.no_grad():
            return module(x) * 2

    x = torch.randn(4, 6)
    close(compiled(f)(x), f(x))
    assert len(models) == 1


def test_gradients_fall_back():
    module = nn.Linear(6, 3)
    x = torch.randn(4, 6)
    falls_back(module, x, match=r"its outputs would need gradients.*torch\.no_grad").sum().backward()
    close(module.bias.grad, torch.full((3,), 4.0), **EXACT)
    y = torch.randn(2, requires_grad=True)
    falls_back(lambda y: y * 3, y, match="would need gradients").sum().backward()
    close(y.grad, torch.full((2,), 3.0), **EXACT)


@torch.no_grad()
def test_training_mode_falls_back():
    x = torch.randn(4, 3, 6, 6)
    module = nn.BatchNorm2d(3).train()
    expected = x.mean((0, 2, 3)) * 0.1  # times the momentum
    falls_back(module, x, match=r"a graph of . ops? itself: it writes to its inputs or buffers.*model\.eval\(\) first")
    close(module.running_mean, expected)
    zeros = falls_back(nn.Dropout(0.5).train(), x, match=r"it draws random numbers \(aten\..*model\.eval\(\)") == 0
    assert 0.3 < zeros.float().mean() < 0.7


@torch.no_grad()
def test_training_mode_without_effects_is_compiled(models):
    module = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.0)).train()
    x = torch.randn(4, 6)
    close(compiled(module)(x), module(x))
    assert len(models) == 1


def test_writes_to_inputs_fall_back():
    x = torch.zeros(3)

    def f(x):
        x.add_(1)
        return x * 2

    close(falls_back(f, x, match=r"it writes to its inputs or buffers \(l_x_\)"), torch.full((3,), 2.0), **EXACT)
    close(x, torch.ones(3), **EXACT)


def test_outputs_in_the_memory_of_inputs_fall_back():
    x = torch.zeros(2, 2)
    result = falls_back(lambda x: (x.view(-1), x + 1), x, match="one of its outputs shares memory with an input")
    result[0][0] = 5
    assert x[0, 0] == 5


def test_what_the_exporter_refuses_falls_back():
    x = torch.rand(3)
    result = falls_back(torch.special.bessel_j0, x, match=r"torch's ONNX exporter refuses it: .*prims\.bessel_j0")
    close(result, torch.special.bessel_j0(x))


def test_what_the_importer_refuses_falls_back():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    x = torch.ones(3)
    close(falls_back(f, x, match="Headrace cannot compile it: `if` is control flow"), torch.full((3,), 2.0), **EXACT)


def test_complex_numbers_fall_back():
    x = torch.complex(torch.ones(2), torch.ones(2))
    close(falls_back(lambda x: (x * x).real, x, match="torch.complex64, and Headrace has no complex"), torch.zeros(2))
    y = torch.randn(3, 2)
    result = falls_back(lambda y: torch.view_as_complex(y) * 2, y, match="its output 0 is complex64, and the exported")
    close(result, torch.view_as_complex(y * 2))


def test_sparse_tensors_and_other_devices_fall_back():
    with pytest.warns(FallbackWarning, match="an input that is meta, and Headrace takes dense tensors on the CPU"):
        assert compiled(lambda x: x * 2)(torch.empty(3, device="meta")).shape == (3,)
    graph = torch.fx.symbolic_trace(lambda x: x * 2)
    sparse = torch.eye(3).to_sparse()
    with pytest.warns(FallbackWarning, match=r"an input that is torch\.sparse_coo"):
        region = hr_torch.backend(graph, [sparse])
    close(region(sparse).to_dense(), torch.eye(3) * 2, **EXACT)


def test_a_graph_without_ops_is_left_alone():
    x = torch.ones(3)
    graph = torch.fx.symbolic_trace(lambda x: (x,))
    assert hr_torch.backend(graph, [x])(x)[0] is x


def test_a_graph_that_torch_compile_did_not_make(models):
    x = torch.ones(3)
    graph = torch.fx.symbolic_trace(lambda x: (x * 2, x.sum()))
    close(hr_torch.backend(graph, [x])(x), (torch.full((3,), 2.0), torch.tensor(3.0)), **EXACT)
    graph = torch.fx.symbolic_trace(lambda x: x * 2)
    close(hr_torch.backend(graph, [x])(x), torch.full((3,), 2.0), **EXACT)
    assert len(models) == 2
    region = hr_torch.backend(torch.fx.symbolic_trace(lambda x: (x * 2, {"more": x + 1})), [x])
    with pytest.warns(FallbackWarning, match="it gives a .*dict.* within its tuple of outputs"):
        close(region(x)[1]["more"], torch.full((3,), 2.0), **EXACT)


@torch.no_grad()
def test_weights_that_change(models):
    module = nn.Linear(6, 3)
    x = torch.randn(4, 6)
    fast = compiled(module)
    close(fast(x), module(x))
    module.load_state_dict(nn.Linear(6, 3).state_dict())
    close(fast(x), module(x))
    module.weight.data = torch.randn(3, 6)
    close(fast(x), module(x))
    assert [len(model.inputs) for model in models] == [1, 1, 1]


@torch.no_grad()
def test_weights_that_go_on_changing_become_inputs(models):
    module = nn.Linear(6, 3)
    x = torch.randn(4, 6)
    fast = compiled(module)
    for _ in range(6):
        close(fast(x), module(x))
        module.bias.add_(1)
    assert [[spec.shape for spec in model.inputs] for model in models] == [[(4, 6)]] * 3 + [[(3,), (4, 6)]]


@torch.no_grad()
def test_weights_that_are_trained_between_many_calls_stay_constants(models):
    module = nn.Linear(6, 3)
    x = torch.randn(4, 6)
    fast = compiled(module)
    for _ in range(4):
        for _ in range(20):
            result = fast(x)
        close(result, module(x))
        module.weight.add_(1)
    assert [len(model.inputs) for model in models] == [1] * 4


@torch.no_grad()
def test_all_weights_of_a_network_may_become_inputs(models):
    module = torch_kit.settled(torch_kit.residual_network())
    x = torch.randn(2, 3, 64, 64)
    fast = compiled(module)
    for _ in range(5):
        close(fast(x), module(x))
        for weight in (*module.parameters(), *module.buffers()):
            weight.mul_(1.01 if weight.is_floating_point() else 1)
    assert [len(model.inputs) > 20 for model in models] == [False] * 3 + [True]


@torch.no_grad()
def test_modules_of_one_class_have_their_own_weights(models):
    first, second = nn.Linear(6, 3), nn.Linear(6, 3)
    x = torch.randn(4, 6)
    fast = [compiled(first), compiled(second)]
    for _ in range(2):
        close(fast[0](x), first(x))
        close(fast[1](x), second(x))
    assert [len(model.inputs) for model in models] == [1, 1]


def test_weights_in_the_graph_itself(models):
    module = nn.Linear(6, 3).requires_grad_(False)
    graph = torch.fx.symbolic_trace(module)
    x = torch.randn(4, 6)
    region = hr_torch.backend(graph, [x])
    close(region(x), module(x))
    module.bias.add_(1)
    close(region(x), module(x))
    module.bias.add_(1)
    close(region(x), module(x))
    module.bias.add_(1)
    with pytest.warns(FallbackWarning, match="weights in it go on changing between calls"):
        close(region(x), module(x))
    assert len(models) == 3


def test_inference_tensors_in_the_graph_itself_fall_back():
    with torch.inference_mode():
        module = nn.Linear(6, 3)
    x = torch.randn(4, 6)
    graph = torch.fx.symbolic_trace(module)
    with torch.no_grad(), pytest.warns(FallbackWarning, match="it holds inference tensors, whose changes PyTorch does"):
        close(hr_torch.backend(graph, [x])(x), module(x))


def test_numbers_that_depend_on_data_fall_back():
    def f(x):
        return x * 2, x.sum().item() + 1

    x = torch.ones(3)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        result = falls_back(f, x, match=r"a number in it depends on a tensor's values \(add\)")
    close(result, (torch.full((3,), 2.0), 4.0), **EXACT)


def test_numbers_within_a_graph(models):
    fast = compiled(lambda x, scale: x * scale + 1)
    for scale in (0.5, 0.75, 1.25, 3.5):  # an input from the second value on
        close(fast(torch.ones(2), scale), torch.full((2,), scale + 1), **EXACT)
    assert [len(model.inputs) for model in models] == [1, 2]
    fast = compiled(lambda x: x * x.sum().item())
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for value in (1.0, 2.0, 3.0):
            close(fast(torch.full((3,), value)), torch.full((3,), 3 * value * value), **EXACT)
    assert len(models) == 3


@torch.no_grad()
def test_threads_share_a_graph(models):
    module = torch_kit.settled(torch_kit.mobile_network())
    fast = compiled(module)
    xs = [torch.randn(2, 3, 32, 32) for _ in range(8)]
    fast(xs[0])
    models.clear()
    module[-1].bias.add_(1)  # so that all threads find a model that is stale

    def run(x):
        with torch.no_grad():
            return fast(x)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, xs))
    close(results, [module(x) for x in xs])
    assert len(models) == 1, "one thread compiled, and the others waited"


def test_options_reach_the_compiler(models):
    x = torch.randn(4)
    options = {"threads": 1, "opt_level": 1, "backends": ["ccompiler"], "backend_options": {"ccompiler": {"cc": "cc"}}}
    close(compiled(torch.exp, options=options)(x), x.exp())
    assert models[-1].threads == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"thread": 2}, "options: there is no option 'thread'; did you mean 'threads'"),
        ({"output": "x.so"}, "options: there is no option 'output'; the options are backend_options, backends, cache"),
        ({"threads": "two"}, "threads: expected an int, got 'two'"),
        ({"backends": ["nope"]}, "there is no backend 'nope'"),
    ],
)
def test_bad_options_are_errors(options, match):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=match) as raised:
        compiled(torch.exp, options=options)(torch.ones(3))
    assert isinstance(raised.value.inner_exception, hr.UserError)


def test_a_mode_is_an_error():
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="mode: 'max-autotune' is for torch's own"):
        compiled(torch.exp, mode="max-autotune")(torch.ones(3))
    graph = types.SimpleNamespace()
    with pytest.raises(hr.UserError, match="options: expected a dict by name"):
        hr_torch.backend(graph, [], options=["threads"])


@pytest.mark.parametrize("package", ["torch", "onnxscript"])
def test_without_the_packages_the_error_says_how_to_install_them(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # an import of it fails then
    with pytest.raises(hr.MissingError, match=r"needs PyTorch and onnxscript.*pip install '\.\[torch\]'"):
        hr_torch.backend(None, [])


def test_an_error_in_place_of_the_warning():
    def f(x):
        return torch.special.bessel_j0(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        with pytest.raises(FallbackWarning, match="PyTorch runs a graph of 1 op itself"):
            compiled(f)(torch.ones(3))
