"""The model of the suite `lstm` of ./dev bench: one LSTM layer over one sequence."""

from __future__ import annotations

from pathlib import Path

import expected
import onnx_bytes as onnx

UNITS = 128
STEPS = 100


def write_model(folder: Path) -> Path:
    """Writes the layer, with as many inputs as units and seeded random weights, as an ONNX file."""
    path = folder / f"lstm_{UNITS}x{STEPS}.onnx"
    rows = 4 * UNITS  # one for each unit of the input, output, forget and cell gate
    shapes = {"w": [1, rows, UNITS], "r": [1, rows, UNITS], "b": [1, 2 * rows]}
    scale = UNITS**-0.5
    weights = [
        onnx.tensor(name, shape, expected.random_array(shape, seed, scale).values())
        for seed, (name, shape) in enumerate(shapes.items(), 1)
    ]
    node = onnx.node("LSTM", ["x", *shapes], "y", hidden_size=UNITS)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(onnx.model([node], weights, [STEPS, 1, UNITS], [STEPS, 1, 1, UNITS]))
    return path
