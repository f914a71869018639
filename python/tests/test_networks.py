"""The networks of relay.testing: parameters and shapes as Relay's users know them, and small ones compiled."""

import importlib
import re

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace.relay import testing  # noqa: E402


def network(name):
    return importlib.import_module(f"headrace.relay.testing.{name}")


def typed(function):
    return testing.run_infer_type(function)


def shapes_of(function):
    return {param.name_hint: tuple(map(int, param.checked_type.shape)) for param in function.params}


def result_of(function):
    result = function.checked_type.ret_type
    return tuple(map(int, result.shape)), result.dtype


def count_of(shapes):
    return sum(int(np.prod(shape)) for name, shape in shapes.items() if name != "data")


# The numbers of parameters are those that others publish: of mxnet's perceptron, of Nature's network, of torchvision's
# vgg11 and SqueezeNets, and of Keras' MobileNet; Keras' Inception v3 has 23,851,784 without the 17,216 gammas.
@pytest.mark.parametrize(
    ("make", "result", "count"),
    [
        (lambda: testing.mlp.get_net(2), (2, 10), 109_386),
        (lambda: testing.dqn.get_net(3), (3, 18), 1_693_362),
        (lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32"), (1, 1000), 132_863_336),
        (lambda: testing.squeezenet.get_net(1, (3, 224, 224), 1000, "1.0", "float32"), (1, 1000), 1_248_424),
        (lambda: testing.squeezenet.get_net(1, (3, 224, 224), 1000, "1.1", "float32"), (1, 1000), 1_235_496),
        (lambda: testing.mobilenet.mobile_net(), (1, 1000), 4_253_864),
        (
            lambda: testing.inception_v3.get_net(1, 1000, (3, 299, 299), "float32"),
            (1, 1000),
            23_851_784 + 17_216,
        ),
    ],
)
def test_numbers_of_parameters(make, result, count):
    function = typed(make())
    assert result_of(function) == (result, "float32")
    assert count_of(shapes_of(function)) == count


def test_the_parameters_of_a_residual_network():
    function = typed(testing.resnet.get_net(2, 1000, num_layers=50))
    shapes = shapes_of(function)
    assert result_of(function) == ((2, 1000), "float32")
    assert list(shapes)[:7] == [
        "data",
        "bn_data_gamma",
        "bn_data_beta",
        "bn_data_moving_mean",
        "bn_data_moving_var",
        "conv0_weight",
        "bn0_gamma",
    ]
    for name, shape in {
        "conv0_weight": (64, 3, 7, 7),
        "stage1_unit1_conv1_weight": (64, 64, 1, 1),
        "stage1_unit1_conv2_weight": (64, 64, 3, 3),
        "stage1_unit1_conv3_weight": (256, 64, 1, 1),
        "stage1_unit1_sc_weight": (256, 64, 1, 1),
        "stage1_unit2_bn1_gamma": (256,),
        "stage4_unit3_conv3_weight": (2048, 512, 1, 1),
        "bn1_moving_var": (2048,),
        "fc1_weight": (1000, 2048),
        "fc1_bias": (1000,),
    }.items():
        assert shapes[name] == shape, name
    assert "stage1_unit2_sc_weight" not in shapes
    assert sum(name.startswith("stage") and "conv" in name for name in shapes) == 48
    small = shapes_of(typed(testing.resnet.get_net(1, 10, 20, (3, 28, 28))))
    assert (small["conv0_weight"], small["stage3_unit3_conv2_weight"]) == ((16, 3, 3, 3), (64, 64, 3, 3))
    narrow = shapes_of(typed(testing.resnet.get_net(1, 10, 164, (3, 28, 28))))
    assert narrow["stage1_unit18_conv2_weight"] == (16, 16, 3, 3)
    last = typed(testing.resnet.get_net(1, 10, 18, (224, 224, 3), layout="NHWC"))
    assert (result_of(last)[0], shapes_of(last)["conv0_weight"]) == ((1, 10), (7, 7, 3, 64))


def test_the_parameters_of_videos():
    function = typed(testing.resnet_3d.get_net(1, 400, 18))
    shapes = shapes_of(function)
    assert result_of(function)[0] == (1, 400)
    assert (shapes["data"], shapes["conv0_weight"]) == ((1, 3, 16, 112, 112), (64, 3, 3, 7, 7))
    assert shapes["stage2_unit1_sc_weight"] == (128, 64, 1, 1, 1)
    last = typed(testing.resnet_3d.get_net(1, 10, 18, (16, 112, 112, 3), layout="NDHWC"))
    assert (result_of(last)[0], shapes_of(last)["bn_data_gamma"]) == ((1, 10), (3,))


def test_the_parameters_of_other_networks():
    names = shapes_of(typed(testing.vgg.get_net(1, (3, 32, 32), 10, "float16", 16, batch_norm=True)))
    assert (names["conv5_3_bias"], names["bn1_2_gamma"], names["fc6_weight"]) == ((512,), (64,), (4096, 512))
    names = shapes_of(typed(testing.squeezenet.get_net(1, (3, 64, 64), 10, "1.1", "float32")))
    assert (names["fire8_right_conv_weight"], names["conv_final_bias"]) == (
        (256, 64, 3, 3),
        (10,),
    )
    names = shapes_of(typed(testing.inception_v3.get_net(1, 10, (3, 299, 299), "float32")))
    for name, shape in {
        "conv_2_conv1_weight": (64, 32, 3, 3),
        "mixed_tower_conv_1_conv1_weight": (64, 48, 5, 5),
        "mixed_4_tower_1_conv_4_conv1_weight": (192, 128, 1, 7),
        "mixed_8_tower_1_conv_3_bn_gamma": (192,),
        "mixed_10_tower_1_mixed_conv_1_conv1_weight": (384, 384, 3, 1),
        "mixed_10_tower_2_conv_conv1_weight": (192, 2048, 1, 1),
        "fc2_bias": (10,),
    }.items():
        assert names[name] == shape, name
    names = shapes_of(typed(testing.mobilenet.mobile_net(10, (1, 64, 64, 3), layout="NHWC")))
    assert names["separable_conv_block_13_weight"] == (3, 3, 1024, 1)
    assert "separable_conv_block_9_weight" not in shapes_of(typed(testing.mobilenet.mobile_net(10, is_shallow=True)))
    names = shapes_of(typed(testing.dcgan.get_net(4)))
    assert (names["dense_weight"], names["g2_deconv_weight"], names["g5_deconv_weight"]) == (
        (16384, 100),
        (1024, 512, 4, 4),
        (128, 3, 4, 4),
    )
    assert result_of(typed(testing.dcgan.get_net(4, layout="NHWC")))[0] == (4, 64, 64, 3)
    names = shapes_of(typed(testing.lstm.get_net(2, 8)))
    assert (names["i2h_1_weight"], names["h2h_0_bias"]) == ((32, 8), (32,))


@pytest.mark.parametrize(("size", "channels"), [(121, 64), (169, 69)])
def test_the_layers_of_densenet(size, channels, monkeypatch):
    # The weights of the whole network take seconds to draw.
    monkeypatch.setattr("headrace._compat.networks.densenet.create_workload", lambda net: (typed(net), {}))
    function, _ = testing.densenet.get_workload(size, classes=10, batch_size=1)
    shapes = shapes_of(function)
    assert result_of(function)[0] == (1, 10)
    assert (shapes["conv1_weight"], shapes["conv2d_1_0_0_weight"]) == ((channels, 3, 7, 7), (128, channels, 1, 1))
    # A block gives its own layers alone.
    assert shapes["conv_t_0_weight"][1] == 6 * 32


class Spread(testing.init.Initializer):
    """Weights that keep the size of values from layer to layer (He et al. 2015)."""

    def __init__(self, outputs):
        super().__init__()
        self.random, self.outputs = np.random.default_rng(0), outputs

    def _init_weight(self, name, arr):
        is_depthwise = re.search(r"block_\d+_weight$", name) is not None
        inputs = 9 if is_depthwise else arr.size / arr.shape[self.outputs if arr.ndim == 4 else 0]
        arr[:] = self.random.normal(0, np.sqrt(2 / inputs), arr.shape)


def compiled_and_interpreted(mod, params, inputs):
    results = [
        relay.create_executor(kind, mod, params=params).evaluate()(*inputs).numpy() for kind in ("debug", "graph")
    ]
    assert np.isfinite(results[0]).all()
    assert np.ptp(results[0]) > 0, "a network that gives one number everywhere shows nothing"
    # float32, with sums of at most some thousand terms
    np.testing.assert_allclose(results[1], results[0], rtol=1e-3, atol=1e-5)
    return results[0]


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: testing.mlp.get_workload(2, image_shape=(1, 4, 4)), (2, 1, 4, 4)),
        (lambda: testing.resnet.get_workload(1, 10, 8, (3, 8, 8)), (1, 3, 8, 8)),
        (lambda: testing.resnet.get_workload(1, 10, 8, (8, 8, 3), layout="NHWC"), (1, 8, 8, 3)),
        (lambda: testing.resnet_3d.get_workload(1, 10, 8, (3, 2, 8, 8)), (1, 3, 2, 8, 8)),
        (lambda: testing.squeezenet.get_workload(1, 10, "1.1", (3, 32, 32)), (1, 3, 32, 32)),
        (
            lambda: testing.create_workload(testing.mobilenet.mobile_net(10, (1, 3, 32, 32), alpha=0.125), Spread(0)),
            (1, 3, 32, 32),
        ),
        (
            lambda: testing.create_workload(
                testing.mobilenet.mobile_net(10, (1, 32, 32, 3), alpha=0.125, layout="NHWC"), Spread(-1)
            ),
            (1, 32, 32, 3),
        ),
        (lambda: testing.dcgan.get_workload(1, ngf=2, random_len=10), (1, 10)),
        (lambda: testing.dcgan.get_workload(1, ngf=2, random_len=10, layout="NHWC"), (1, 10)),
        (lambda: testing.dqn.get_workload(1, 4, (1, 36, 36)), (1, 1, 36, 36)),
        (lambda: testing.synthetic.get_workload((1, 2, 6, 4)), (1, 2, 6, 4)),
    ],
)
def test_a_small_network_runs(make, shape):
    mod, params = make()
    assert "data" not in params
    data = np.random.default_rng(0).normal(size=shape).astype("float32")
    compiled_and_interpreted(mod, params, [data])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_recurrent_network_runs():
    mod, params = testing.lstm.get_workload(2, 3, batch_size=2)
    random = np.random.default_rng(0)
    inputs = [random.normal(size=(2, 3)).astype("float32") for _ in range(2)]
    h = c = np.zeros((2, 3), "float32")
    values = {name: value.numpy() for name, value in params.items()}
    for i, x in enumerate(inputs):
        gates = x @ values[f"i2h_{i}_weight"].T + values[f"i2h_{i}_bias"]
        gates = gates + h @ values[f"h2h_{i}_weight"].T + values[f"h2h_{i}_bias"]
        into, kept, new, out = np.split(gates, 4, axis=1)
        c = sigmoid(kept) * c + sigmoid(into) * np.tanh(new)
        h = sigmoid(out) * np.tanh(c)
    run = relay.create_executor("debug", mod, params=params).evaluate()
    np.testing.assert_allclose(run(*inputs).numpy(), h, rtol=1e-5, atol=1e-6)
    # Each step's input is called "data", and what is compiled knows its inputs by their names.
    with pytest.raises(hr.UserError, match="both named 'data'"):
        relay.build(mod, params=params)
    main = mod["main"]
    steps = {
        param: relay.var(f"data{i}", shape=(2, 3)) for i, param in enumerate(main.params) if param.name_hint == "data"
    }
    renamed = relay.Function([steps.get(param, param) for param in main.params], relay.bind(main.body, steps))
    run = relay.create_executor("graph", renamed, params=params).evaluate()
    np.testing.assert_allclose(run(*inputs).numpy(), h, rtol=1e-5, atol=1e-6)


# --- parameters


def test_parameters_that_xavier_draws():
    x = relay.var("data", shape=(1, 4, 8, 8))
    layer = testing.layers.conv2d(x, channels=6, kernel_size=(3, 3), name="conv")
    layer = testing.layers.conv2d(
        layer, channels=6, groups=6, kernel_size=(3, 3), kernel_layout="OIHW", name="depthwise"
    )
    net = testing.layers.batch_norm_infer(layer, name="bn")
    function = relay.Function(relay.analysis.free_vars(net), net)
    mod, params = testing.create_workload(function, seed=3)
    assert [param.name_hint for param in mod["main"].params] == ["data", *params]
    # np.random.seed(3), then a number in +-sqrt(3 / mean of 4 * 9 and 6 * 9 connections) for each element
    limit = np.sqrt(3 / 45)
    drawn = np.random.RandomState(3).uniform(-limit, limit, (6, 4, 3, 3)).astype("float32")
    np.testing.assert_array_equal(params["conv_weight"].numpy(), drawn)
    depthwise = np.abs(params["depthwise_weight"].numpy())
    assert 0.9 * np.sqrt(3 / 9) < depthwise.max() <= np.sqrt(3 / 9)
    means = {name: float(value.numpy().mean()) for name, value in params.items() if name.startswith("bn")}
    assert means == {"bn_gamma": 1, "bn_beta": 0, "bn_moving_mean": 0, "bn_moving_var": 1}
    _, others = testing.create_workload(function, testing.init.Xavier(factor_type="out", magnitude=1))
    assert np.abs(others["conv_weight"].numpy()).max() <= np.sqrt(1 / 54)
    _, equal = testing.create_workload(function, testing.init.Constant())
    assert np.unique(equal["conv_weight"].numpy()).tolist() == [np.float32(1 / 216)]


def test_parameters_of_ones_own():
    class Counting(testing.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = len(name)

        def _init_default(self, name, arr):
            arr[:] = 7

    x, w, other = relay.var("data", shape=(2, 3)), relay.var("a_weight"), relay.var("other", shape=(2, 4))
    function = relay.Function([x, w, other], relay.nn.dense(x, w, units=4) + other)
    _, params = testing.create_workload(function, Counting())
    assert {name: float(value.numpy()[0, 0]) for name, value in params.items()} == {"a_weight": 8, "other": 7}
    with pytest.raises(hr.UserError, match="no initialiser knows the parameter 'other'"):
        testing.create_workload(function)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: testing.resnet.get_net(1, 10, 19), "resnet: num_layers is 19; it is 18, 34"),
        (lambda: testing.resnet.get_net(1, 10, 19, (3, 28, 28)), "up to 28 high it is 6"),
        (lambda: testing.resnet_3d.get_net(1, 10, 19), "resnet_3d: num_layers is 19"),
        (lambda: testing.resnet.resnet([1], 2, [8, 8, 8], 10, (1, 3, 8, 8)), "num_stages is 2, with 1 units"),
        (lambda: testing.vgg.get_net(1, (3, 32, 32), 10, "float32", 12), "num_layers is 12; it is 11, 13, 16 or 19"),
        (lambda: testing.squeezenet.get_net(1, (3, 32, 32), 10, "2.0", "float32"), 'it is "1.0" or "1.1"'),
        (lambda: testing.densenet.get_workload(100), "densenet_size is 100"),
        (lambda: testing.mobilenet.mobile_net(layout="NCHW8c"), "layout is 'NCHW8c'"),
        (lambda: testing.dcgan.get_net(1, oshape=(3, 32, 32)), "images are 64 high and wide"),
        (lambda: testing.dcgan.get_net(1, layout="CHWN"), "layout is 'CHWN'"),
        (lambda: testing.layers.conv_kernel_layout("NCDHW"), "data_layout is 'NCDHW'; it is NCHW or NHWC"),
        (lambda: testing.layers.conv2d(relay.var("x", shape=(1, 3, 8, 8)), channels=3), "layers.conv2d: give name"),
        (lambda: testing.init.Xavier()("a_weight", np.zeros(3)), "takes two axes or more"),
        (lambda: testing.init.Xavier("gaussian")("a_weight", np.zeros((3, 3))), "rnd_type is 'gaussian'"),
        (lambda: testing.init.Xavier(factor_type="all")("a_weight", np.zeros((3, 3))), "factor_type is 'all'"),
    ],
)
def test_what_networks_refuse(make, message):
    with pytest.raises(hr.UserError, match=message):
        make()


# --- checks of gradients, and other helpers of tests


def test_gradients_are_checked():
    x, y = relay.var("x", shape=(2, 3), dtype="float64"), relay.var("y", shape=(3,), dtype="float64")
    testing.check_grad(relay.Function([x, y], relay.exp(x) * y))
    arrays = [np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([3.0, 2, 1])]
    before = [array.copy() for array in arrays]
    testing.check_grad(relay.Function([x, y], x * y), arrays, test_inputs=[arrays[1]], mode="first_order")
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    relay.op.register("networks_test.wrong")
    op = relay.op.get("networks_test.wrong").set_num_inputs(1)
    op.add_argument("data", "Tensor", "f[...]: x").add_type_rel("Identity")

    @relay.op.register_compute(op.name)
    def compute(attrs, inputs, out_type):
        return hr.te.compute(out_type.shape, lambda *i: inputs[0][i] * 3.0)

    relay.op.register_gradient(op.name, lambda call, grad: [grad])
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        testing.check_grad(relay.Function([y], relay.Call(op, [y])))
    with pytest.raises(hr.UserError, match="arrays that are among inputs"):
        testing.check_grad(relay.Function([y], relay.exp(y)), [arrays[1]], test_inputs=[arrays[0]])


def test_ops_are_counted():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.exp(relay.exp(x)) + relay.Call(relay.Function([x], relay.exp(x)), [x]))
    assert testing.count_ops(f) == {"exp": 3, "add": 1}


def test_a_pass_of_an_expression_with_the_prelude():
    x = relay.var("x", shape=(2,))
    out = testing.run_opt_pass(relay.exp(x) * relay.const(1.0), relay.transform.SimplifyExpr(), import_prelude=True)
    assert out.op.name == "exp"
    assert out.checked_type == relay.TensorType((2,))


@pytest.mark.parametrize("name", ["lenet", "yolo_detection", "darknet"])
def test_networks_that_are_none(name):
    with pytest.raises(AttributeError, match="export one to ONNX"):
        getattr(testing, name)
