#!/usr/bin/env python3
"""Two ONNX models as the two stages of a pipeline: while the second works on one frame, the first works on the next.

    two_models.py FIRST.onnx SECOND.onnx [--frames FRAMES.npy] [--cpus 0,1]

Each frame is the input of the first model; its outputs are the inputs of the second, in order. Prints the results'
shapes and what each stage did. Without frames, it makes 100 random ones. Writes first.so and second.so here.
"""

from __future__ import annotations

import argparse
import sys

import headrace as hr
import numpy as np
from headrace import pipeline


def compiled(path: str, target: str) -> str:
    """The artifact of a model, for one thread."""
    hr.compile(path, threads=1, output=target)
    return target


def two_processors(text: str) -> list[list[int]]:
    """Reads "0,1"."""
    first, second = text.split(",")  # ValueError becomes a usage error
    return [[int(first)], [int(second)]]


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
    parser.add_argument("--frames", help="an array whose items are the frames")
    parser.add_argument("--cpus", type=two_processors, default=[[], []], help="one for each of the two, as in 0,1")
    args = parser.parse_args()

    artifacts = [compiled(args.first, "first.so"), compiled(args.second, "second.so")]
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
