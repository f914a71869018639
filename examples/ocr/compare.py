"""Compares the pipeline with other ways to read the same pages: how much faster it is, and how sure that is."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import codes
import numpy as np
import reader

# A round streams at least so many pages, so that filling and emptying a pipeline takes little of it.
LEAST_PAGES = 12
LEAST_ROUNDS = 6  # with fewer, no interval of order statistics holds the median with 95 %
FIRST = "pipeline, headrace"

Way = Callable[[Sequence[np.ndarray]], list[str]]


def compare(
    pages: Sequence[np.ndarray],
    steps: reader.Steps,
    artifacts: codes.Codes,
    models: Mapping[str, Path],
    *,
    threads: int,
    max_batch: int,
    rounds: int,
) -> str:
    """Runs the pages by all ways in turns and returns the table of their pages a second.

    The ways are the pipeline with artifacts and with onnxruntime's sessions, and with each of them one page at a time
    on one and on two threads.
    """
    options = {"threads": threads, "max_batch": max_batch}
    with ExitStack() as stack:
        ways: dict[str, Way] = {}
        for name, of in (
            ("headrace", artifacts),
            ("onnxruntime", codes.sessions(models, threads, widths=steps.widths, max_batch=max_batch)),
        ):
            pipe = stack.enter_context(reader.build(steps, of, **options))
            ways[f"pipeline, {name}"] = lambda pages, pipe=pipe: list(map(reader.text_of, pipe.map(pages)))
        for count in (1, 2):
            ways |= _page_by_page(steps, artifacts, models, count, max_batch)
        stream = list(pages) * math.ceil(LEAST_PAGES / len(pages))
        texts = {name: way(pages) for name, way in ways.items()}  # also warms up
        seconds = time_in_turns({name: lambda way=way: way(stream) for name, way in ways.items()}, rounds)
    return "\n".join(
        [
            *_table({name: [len(stream) / one for one in taken] for name, taken in seconds.items()}),
            f"pages a second are medians of {rounds} rounds of {len(stream)} pages, in turns; threads {threads}, "
            f"max batch {max_batch}",
            *(f"{name} reads another text" for name, text in texts.items() if text != texts[FIRST]),
        ]
    )


def _page_by_page(
    steps: reader.Steps, artifacts: codes.Codes, models: Mapping[str, Path], threads: int, max_batch: int
) -> dict[str, Way]:
    """The ways that read one page at a time."""
    kinds = {
        "headrace": codes.callables(artifacts, threads),
        "onnxruntime": codes.sessions(models, threads, widths=steps.widths, max_batch=max_batch),
    }

    def way(functions: codes.Codes) -> Way:
        return lambda pages: [reader.text_of(reader.read_page(steps, functions, page)) for page in pages]

    return {f"one page at a time, {name}, threads {threads}": way(of) for name, of in kinds.items()}


def time_in_turns(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each way in each round. Each round begins with another way, so that none always runs first."""
    names = list(ways)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            begin = time.perf_counter()
            ways[name]()
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """An interval that holds the median with at least 95 %, whatever the values' distribution.

    Its ends are the k-th smallest and the k-th largest value, for the largest k for which a binomial variable of
    probability 1/2 is below k in at most 2.5 % (Conover, "Practical Nonparametric Statistics", section 3.2). Needs six
    values.
    """
    count = len(values)
    if count < LEAST_ROUNDS:
        raise ValueError(f"an interval needs {LEAST_ROUNDS} values, got {count}")
    below, k = 0.0, 0
    while (below := below + math.comb(count, k) / 2**count) <= 0.025:
        k += 1
    ordered = sorted(values)
    return ordered[k - 1], ordered[-k]


def _table(rates: Mapping[str, Sequence[float]]) -> list[str]:
    """Pages a second of each way, and the ratio of the first way to it over the rounds."""
    lines = [f"{'way':<48} {'pages/s':>8} {'ratio':>6}  95 % interval"]
    for name, own in rates.items():
        line = f"{name:<48} {statistics.median(own):>8.2f}"
        if name != FIRST:
            ratios = [first / other for first, other in zip(rates[FIRST], own, strict=True)]
            low, high = median_interval(ratios)
            line += f" {statistics.median(ratios):>6.2f}  {low:.2f} to {high:.2f}"
        lines.append(line)
    return lines
