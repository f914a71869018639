#!/usr/bin/env python3
"""Two models, ONNX or Relay, as a pipeline: while the second works on one frame, the first works on the next.

    two_models.py FIRST SECOND [--dim n=1] [--frames FRAMES.npy] [--cpus 0,1]

Each frame is the input of the first model; its outputs are the inputs of the second, in order. Prints the results'
shapes and what each stage did. Without frames, it makes 100 random ones. Writes first.so and second.so here. A pair
that is there:

    two_models.py examples/two-models/blur.relay models/digits.onnx --dim n=1
"""

from __future__ import annotations

import argparse
import sys

import headrace as hr
import numpy as np
from headrace import pipeline


def own_dims(path: str, dims: dict[str, int]) -> dict[str, int]:
    """Those of the sizes that are of dimensions which the model's inputs name."""
    shapes = [port.shape for port in hr.InferenceSession(path).get_inputs()] if dims else []
    return {name: size for name, size in dims.items() if any(name in shape for shape in shapes)}


def compiled(paths: list[str], dims: dict[str, int]) -> list[str]:
    """The artifacts of the models, for one thread each."""
    own = [own_dims(path, dims) for path in paths]
    for name in dims:
        if not any(name in known for known in own):
            raise hr.UserError(f"--dim {name}={dims[name]}: no input of the two models has a dimension '{name}'")
    artifacts = ["first.so", "second.so"]
    for path, known, artifact in zip(paths, own, artifacts, strict=True):
        hr.compile(path, dims=known, threads=1, output=artifact)
    return artifacts


def two_processors(text: str) -> list[list[int]]:
    """Reads "0,1"."""
    numbers = text.split(",")
    if len(numbers) != 2 or not all(one.isdecimal() for one in numbers):
        raise argparse.ArgumentTypeError(f"expected two processors, as in 0,1, got '{text}'")
    return [[int(one)] for one in numbers]


def dimension(text: str) -> tuple[str, int]:
    """Reads "n=1"."""
    name, _, size = text.partition("=")
    if not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE, as in n=1, got '{text}'")
    return name, int(size)


def read_frames(path: str) -> np.ndarray:
    """The frames of a .npy file, at least one."""
    try:
        frames = np.load(path)
    except (OSError, ValueError) as error:
        raise hr.UserError(f"cannot read the frames '{path}': {error}") from error
    if frames.ndim == 0 or len(frames) == 0:
        raise hr.UserError(f"'{path}' holds no frames")
    return frames


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument(
        "--dim",
        type=dimension,
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="a dimension that a model leaves open",
    )
    parser.add_argument("--frames", help="a .npy array of frames, each of the shape of the first model's input")
    parser.add_argument("--cpus", type=two_processors, default=[[], []], help="one for each of the two, as in 0,1")
    args = parser.parse_args()

    artifacts = compiled([args.first, args.second], dict(args.dim))
    port = hr.load(artifacts[0]).inputs[0]
    frames = read_frames(args.frames) if args.frames else np.random.default_rng(0).random((100, *port.shape))

    stages = [pipeline.Stage(path, cpus=own) for path, own in zip(artifacts, args.cpus, strict=True)]
    with pipeline.chain(stages, max_inflight=8) as pipe:
        results = list(pipe.map(frames.astype(port.dtype, copy=False)))
        last = results[-1] if isinstance(results[-1], tuple) else (results[-1],)
        print(f"{len(results)} results of the shape {', '.join(str(tuple(one.shape)) for one in last)}")
        print(pipeline.format_metrics(pipe.metrics()))


if __name__ == "__main__":
    try:
        main()
    except hr.UserError as error:
        sys.exit(f"two_models.py: {error}")
