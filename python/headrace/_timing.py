"""How long a function of a module takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace import _arguments, _core


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds of one call: the mean of each repetition, and what they come to.

    Parameters
    ----------
    results : tuple of float
        By repetition.
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the repetitions."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """The fastest repetition."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The slowest repetition."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of the repetitions; 0 of one."""
        return statistics.pstdev(self.results)


def time_evaluator(
    module: _core.Module, func_name: str, dev: _core.Device | None = None, number: int = 10, repeat: int = 1
) -> Callable[..., BenchmarkResult]:
    """What times a function of the module: it calls the function once, then times it.

    Parameters
    ----------
    module : Module
        The module.
    func_name : str
        The function, such as "run" of a graph executor.
    dev : Device, optional
        The CPU.
    number : int
        How many calls a repetition has.
    repeat : int
        How many repetitions.

    Returns
    -------
    function
        Of the arguments of the timed one. It gives the seconds of a call: `results` by repetition, their `mean`,
        `median`, `min`, `max` and `std`.

    Raises
    ------
    UserError
        For a count below 1.
    """
    if dev is not None and not isinstance(dev, _core.Device):
        raise _core.UserError(f"dev: expected a Device, as headrace.cpu(), got {_arguments.kind(dev)}")
    if dev is not None:
        _arguments.present(dev, "dev")
    calls, repetitions = _count(number, "number"), _count(repeat, "repeat")
    function = module[_arguments.text(func_name, "func_name")]

    def evaluate(*args: Any) -> BenchmarkResult:
        function(*args)
        results = []
        for _ in range(repetitions):
            start = time.perf_counter()
            for _ in range(calls):
                function(*args)
            results.append((time.perf_counter() - start) / calls)
        return BenchmarkResult(tuple(results))

    return evaluate


def _count(value: int, what: str) -> int:
    count = _arguments.integer(value, what)
    if count < 1:
        raise _core.UserError(f"{what}: {count} is none; it is 1 or more")
    return count
