"""Cases of recurrent layers, whose results come from onnxruntime, or are worked out by numpy; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, error, run_onnx_node

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
NEAR = 2e-6


def run_layer(cell: str, args: list[np.ndarray], **attrs: object) -> list[np.ndarray]:
    """All results of the ONNX operator."""
    results = ["y", "h", "c"] if cell == "lstm" else ["y", "h"]
    return run_onnx_node(cell.upper(), args, results, 14, hidden_size=args[2].shape[2], **attrs)


def layer_args(numbers: Numbers, cell: str, t: int, b: int, i: int, h: int, d: int = 1) -> list[np.ndarray]:
    """Data, weights, recurrent weights, biases, lengths and initial values; of an LSTM cells and peepholes, too."""
    g, data = GATES[cell], numbers.data
    shapes = [(t, b, i), (d, g * h, i), (d, g * h, h), (d, 2 * g * h)]
    args = [data(*s, low=-1, high=1) for s in shapes] + [np.full(b, t, "int32")]
    states = [(d, b, h), (d, b, h), (d, 3 * h)] if cell == "lstm" else [(d, b, h)]
    return args + [data(*s, low=-1, high=1) for s in states]


def call_of(op: str, count: int, attrs: str = "") -> str:
    return f"nn.{op}({', '.join(f'%{k}' for k in range(count))}{', ' if attrs else ''}{attrs})"


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(args: list[np.ndarray]) -> list[np.ndarray]:
    """A forward LSTM with all steps, in the dtype of its arguments."""
    x, w, r, b, _, h, c, p = args
    n, ys = h.shape[2], []
    h, c, peephole = h[0], c[0], np.split(p[0], 3)
    for t in range(len(x)):
        i, o, f, z = np.split(x[t] @ w[0].T + h @ r[0].T + b[0, : 4 * n] + b[0, 4 * n :], 4, 1)
        c = sigmoid(f + peephole[2] * c) * c + sigmoid(i + peephole[0] * c) * np.tanh(z)
        h = sigmoid(o + peephole[1] * c) * np.tanh(c)
        ys.append(h[None])
    return [np.stack(ys), h[None], c[None]]


def packed(r: np.ndarray, gates: int, lanes: int) -> np.ndarray:
    """The recurrent weights in tiles; rows past the last unit hold 99, which is not used."""
    d, _, h = r.shape
    rows = r.reshape(d, gates, h, h)
    count = -(-h // lanes)
    rows = np.pad(rows, ((0, 0), (0, 0), (0, count * lanes - h), (0, 0)), constant_values=99)
    return rows.reshape(d, gates, count, lanes, h).transpose(0, 2, 4, 1, 3).copy()


def add_layers(numbers: Numbers) -> None:
    for cell in GATES:
        both = {"direction": "bidirectional"}
        for name, d, attrs, more in (
            ("", 1, {}, ""),
            (" clipped", 2, both | {"clip": 0.5}, 'direction="bidirectional", clip=0.5f64'),
        ):
            args = layer_args(numbers, cell, 4, 2, 3, 5, d)
            case(f"{cell}{name}", call_of(cell, len(args), more), args, run_layer(cell, args, **attrs), NEAR)
        args = layer_args(numbers, cell, 5, 3, 2, 4)
        args[4] = np.array([2, 5, 1], "int32")
        call = call_of(cell, len(args), 'direction="reverse"')
        case(f"{cell} lengths", call, args, run_layer(cell, args, direction="reverse"), NEAR)
    args = layer_args(numbers, "lstm", 3, 2, 2, 5)
    call = call_of("lstm", 8, "input_forget=True")
    case("lstm input_forget", call, args, run_layer("lstm", args, input_forget=1), NEAR)
    args = layer_args(numbers, "gru", 4, 2, 3, 5, 2)
    call = call_of("gru", 6, 'direction="bidirectional", linear_before_reset=True')
    results = run_layer("gru", args, direction="bidirectional", linear_before_reset=1)
    case("gru linear_before_reset", call, args, results, NEAR)

    # A sequence without steps keeps the initial values; onnxruntime gives zeros for those.
    args = layer_args(numbers, "rnn", 2, 2, 3, 3)
    args[4] = np.array([0, 2], "int32")
    y, h = run_layer("rnn", args)
    h[0, 0] = args[5][0, 0]
    case("rnn of no steps", call_of("rnn", 6), args, [y, h], NEAR)
    args = layer_args(numbers, "lstm", 0, 2, 3, 3)
    none = np.zeros((0, 1, 2, 3), "float32")
    case("lstm of no steps", call_of("lstm", 8), args, [none, args[5], args[6]])
    for dtype, tolerance in (("float64", 1e-14), ("float16", 2e-3)):
        args = [a if a.dtype == "int32" else a.astype(dtype) for a in layer_args(numbers, "lstm", 3, 2, 4, 6)]
        results = [y.astype(dtype) for y in lstm_by_hand([a.astype("float64") for a in args])]
        case(f"lstm {dtype}", call_of("lstm", 8), args, results, tolerance)


def add_activations(numbers: Numbers) -> None:
    """Four activations in each GRU: f and g of both directions."""
    for names, given, alpha, beta in (
        ("Affine Elu Relu ScaledTanh", "affine elu relu scaled_tanh", [0.7, 0.6, 0.9], [0.2, 0.6]),
        ("LeakyRelu Softplus Sigmoid Tanh", "leaky_relu softplus sigmoid tanh", [0.2], []),
        (
            "HardSigmoid ThresholdedRelu Softsign Elu",
            "hard_sigmoid thresholded_relu softsign elu",
            [0.3, 0.3, 0.5],
            [0.4],
        ),
    ):
        args = layer_args(numbers, "gru", 3, 2, 3, 4, 2)
        attrs = {"direction": "bidirectional", "activations": names.split(), "activation_alpha": alpha}
        quoted = ", ".join(f'"{name}"' for name in given.split())
        more = f"activations=[{quoted}], "
        more += f"activation_alpha=[{', '.join(f'{x}f64' for x in alpha)}]"
        if beta:
            attrs["activation_beta"], more = beta, f"{more}, activation_beta=[{', '.join(f'{x}f64' for x in beta)}]"
        call = call_of("gru", 6, f'direction="bidirectional", {more}')
        case(f"gru {given}", call, args, run_layer("gru", args, **attrs), NEAR)
    args = layer_args(numbers, "lstm", 3, 2, 3, 4, 2)
    names = ["HardSigmoid", "LeakyRelu", "Tanh", "Sigmoid", "Elu", "Softsign"]
    attrs = {"activations": names, "activation_alpha": [0.3, 0.1, 0.8], "activation_beta": [0.4]}
    more = (
        'direction="bidirectional", activations=["hard_sigmoid", "leaky_relu", "tanh", "sigmoid", "elu", "softsign"], '
        "activation_alpha=[0.3f64, 0.1f64, 0.8f64], activation_beta=[0.4f64]"
    )
    results = run_layer("lstm", args, direction="bidirectional", **attrs)
    case("lstm activations", call_of("lstm", 8, more), args, results, NEAR)
    # Large numbers: the exponentials of softplus do not overflow.
    x = layer_args(numbers, "rnn", 1, 1, 1, 3)
    x[0][:], x[1][0, :, 0], x[3][:], x[5][:] = 1, [200, -200, 90], 0, 0
    y = np.array([200, 0, 90], "float32")
    case(
        "rnn softplus far",
        call_of("rnn", 6, 'activations=["softplus"]'),
        x,
        [y.reshape(1, 1, 1, 3), y.reshape(1, 1, 3)],
    )


def add_steps(numbers: Numbers) -> None:
    """The loops over the steps; some tiles are not full."""
    for cell, lanes, d, attrs in (
        ("lstm", 2, 1, {}),
        ("lstm", 4, 2, {"direction": "bidirectional"}),
        ("gru", 3, 2, {"direction": "bidirectional", "linear_before_reset": 1}),
        ("gru", 8, 1, {"direction": "reverse"}),
        ("rnn", 4, 1, {}),
    ):
        args = layer_args(numbers, cell, 4, 3, 2, 6, d)
        args[4] = np.array([4, 1, 3], "int32")
        g, x = GATES[cell], args[0].reshape(12, 2)
        own, other = (b.reshape(d, g, 6).copy() for b in np.split(args[3], 2, 1))
        is_reset = bool(attrs.get("linear_before_reset"))
        reset_bias = other[:, 2].copy() if is_reset else np.zeros((d, 6), "float32")
        if is_reset:
            other[:, 2] = 0
        projected = x @ args[1].reshape(-1, 2).T + (own + other).reshape(-1)
        given = [projected.reshape(4, 3, -1).astype("float32"), packed(args[2], g, lanes), *args[4:]]
        if cell == "gru":
            given.append(reset_bias)
        more = [f'cell="{cell}"']
        more += [f'direction="{attrs["direction"]}"'] if "direction" in attrs else []
        more += ["linear_before_reset=True"] if is_reset else []
        if d == 2:
            more += ["all_steps=True", "rows=2"]
            args[4] = np.full(3, 4, "int32")  # the op gets other lengths, which it does not read
        call = call_of("recurrent_steps", len(given), ", ".join(more))
        case(f"{cell} steps {lanes}", call, given, run_layer(cell, args, **attrs), NEAR)


def add_errors(numbers: Numbers) -> None:
    for cell in GATES:
        args = layer_args(numbers, cell, 4, 2, 3, 5)
        late = [*args[:4], np.array([4, 5], "int32"), *args[5:]]
        n = len(args)
        error(f"{cell} length", call_of(cell, n), late, "[0, 4]", run=True)
        wrong = [*args[:1], args[1][:, 1:], *args[2:]]
        error(f"{cell} weight", call_of(cell, n), wrong, "weight must be Tensor[(1, ")
    args = layer_args(numbers, "lstm", 4, 2, 3, 5)
    call = call_of("lstm", 8)

    def swapped(i: int, x: np.ndarray) -> list[np.ndarray]:
        return [*args[:i], x, *args[i + 1 :]]

    error("lstm rank", call, swapped(0, args[0][0]), "data must have the shape (steps, batch, inputs)")
    error("lstm dtype", call, swapped(0, args[0].astype("int32")), "float")
    error(
        "lstm recurrent rank", call, swapped(2, args[2][0]), "recurrent must have the shape (directions, gates, hidden)"
    )
    error("lstm recurrent", call, swapped(2, args[2][:, 1:]), "recurrent must be")
    error("lstm bias", call, swapped(3, args[3][:, :20]), "bias must be Tensor[(1, 40), float32]")
    error("lstm lengths", call, swapped(4, args[4].astype("int64")), "sequence_lens must be Tensor[(2), int32]")
    error("lstm initial_h", call, swapped(5, args[5][:, :1]), "initial_h must be Tensor[(1, 2, 5), float32]")
    error("lstm initial_c", call, swapped(6, args[6].astype("float64")), "initial_c must be")
    error("lstm peephole", call, swapped(7, args[7][:, :5]), "peephole must be Tensor[(1, 15), float32]")
    for name, attrs, message in (
        ("direction", 'direction="backward"', "expected one of forward, reverse, bidirectional"),
        ("activation", 'activations=["sigmoid", "tanh", "sin"]', "there is no activation 'sin'"),
        ("activations", 'activations=["sigmoid"]', "activations names 1, expected 3 for 1 direction"),
        ("alpha", 'activations=["affine", "tanh", "tanh"]', "the activation affine needs a number in activation_alpha"),
        ("beta", "activation_beta=[1f64]", "more than the activations sigmoid, tanh, tanh use"),
        ("clip", "clip=-1f64", "clip is -1, expected 0 or a positive number"),
    ):
        error(f"lstm {name}", call_of("lstm", 8, attrs), args, message)
    f = numbers.data
    steps = [f(4, 2, 15), f(1, 2, 5, 3, 4), args[4], args[5], f(1, 5)]
    call = call_of("recurrent_steps", 5, 'cell="gru"')
    for name, i, x, message in (
        ("projected", 0, f(4, 2, 14), "projected must be Tensor[(4, 2, 15), float32]"),
        ("projected rank", 0, f(4, 2), "projected must have the shape (steps, batch, gates)"),
        ("recurrent", 1, f(1, 2, 5, 4, 4), "recurrent must be Tensor[(1, 2, 5, 3, 4), float32]"),
        ("recurrent rank", 1, f(2, 5, 3, 4), "recurrent must have the shape (directions, tiles, hidden, gates, lanes)"),
        ("tiles", 1, f(1, 1, 5, 3, 4), "hold 4 of 5 hidden units"),
        ("bias", 4, f(1, 4), "recurrent_bias must be Tensor[(1, 5), float32]"),
    ):
        error(f"recurrent_steps {name}", call, [*steps[:i], x, *steps[i + 1 :]], message)
    error("recurrent_steps cell", call_of("recurrent_steps", 5, 'cell="mgu"'), steps, "expected one of lstm, gru, rnn")
    error("recurrent_steps count", call_of("recurrent_steps", 5), steps, "a cell lstm takes 6 arguments, got 5")
    late = [*steps[:2], np.array([-1, 4], "int32"), *steps[3:]]
    error("recurrent_steps length", call, late, "[0, 4]", run=True)
    for rows in (0, 65):
        wrong_rows = call_of("recurrent_steps", 5, f'cell="gru", rows={rows}')
        error(f"recurrent_steps rows {rows}", wrong_rows, steps, f"rows is {rows}, expected 1 to 64")
    wide = [steps[0], f(1, 1, 5, 3, 257), *steps[2:]]
    error("recurrent_steps lanes", call, wide, "has 257 hidden units, expected up to 256")


def add_recurrent_cases() -> None:
    numbers = Numbers(37)
    add_layers(numbers)
    add_activations(numbers)
    add_steps(numbers)
    add_errors(numbers)
