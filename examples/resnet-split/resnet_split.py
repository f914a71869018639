#!/usr/bin/env python3
"""One ResNet split over processors: the throughput of the whole model, of two and of four stages.

    resnet_split.py [--layers 50] [--size 224] [--requests 50] [--stages 2,4]

Splits the network into stages of equal time, runs a stream of random images through each pipeline, and compares the
results with those of the whole model. Prints the stages, and requests a second. More stages than processors gain
nothing.
"""

from __future__ import annotations

import argparse
import sys
import time

import headrace as hr
import numpy as np
from headrace import pipeline, relay
from headrace.relay import testing


def network(layers: int, size: int) -> hr.IRModule:
    """The network with random weights."""
    module, params = testing.resnet.get_workload(batch_size=1, num_layers=layers, image_shape=(3, size, size))
    module["main"] = relay.build_module.bind_params_by_name(module["main"], params)
    return module


def whole(module: hr.IRModule, images: np.ndarray, threads: int) -> tuple[list[np.ndarray], float]:
    """The results of the whole model, and its requests a second."""
    executor = hr.graph_executor.GraphModule(relay.build(module)["default"](hr.cpu(), threads))
    executor.run(data=images[0])
    results = []
    begin = time.perf_counter()
    for image in images:
        executor.run(data=image)
        results.append(executor.get_output(0).numpy())
    return results, len(images) / (time.perf_counter() - begin)


def positive(text: str) -> int:
    """Reads an integer above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of 1 or more, got '{text}'")
    return int(text)


def numbers(text: str) -> list[int]:
    """Reads "2,4"."""
    return [positive(one) for one in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=positive, default=50)
    parser.add_argument("--size", type=positive, default=224)
    parser.add_argument("--requests", type=positive, default=50)
    parser.add_argument("--stages", type=numbers, default=[2, 4], help="numbers of stages, as in 2,4")
    args = parser.parse_args()

    module = network(args.layers, args.size)
    images = np.random.default_rng(0).random((args.requests, 1, 3, args.size, args.size), dtype="float32")
    expected, rate = whole(module, images, 1)
    print(f"whole model, one thread: {rate:.1f} a second")
    for stages in args.stages:
        report = pipeline.split(module, f"resnet-{stages}.so", stages=stages)
        times = ", ".join(f"{stage['seconds'] * 1e3:.2f}" for stage in report["stages"])
        print(f"\n{len(report['stages'])} stages of {times} ms, measured one after another")
        with pipeline.load(f"resnet-{stages}.so") as pipe:
            results = list(pipe.map(images))
            print(pipeline.format_metrics(pipe.metrics()))
        worst = max(float(np.abs(a.numpy() - b).max()) for a, b in zip(results, expected, strict=True))
        print(f"largest difference from the whole model {worst:.1e}")


if __name__ == "__main__":
    try:
        main()
    except hr.UserError as error:
        sys.exit(f"resnet_split.py: {error}")
