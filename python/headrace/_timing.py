"""How long a function of a module takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from time import perf_counter, sleep
from typing import Any

from headrace import _arguments, _core


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds of one call: the mean of each repetition, and what they come to. Its text is a table in milliseconds.

    Parameters
    ----------
    results : tuple of float
        By repetition.
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the repetitions."""
        return math.fsum(self.results) / len(self.results)

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        import statistics  # takes long to import

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
        import statistics

        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        rows = [[f"{name} (ms)" for name in names], [f"{1e3 * getattr(self, name):.4f}" for name in names]]
        return "\n".join(["Execution time summary:", *("".join(f"{cell:>13}" for cell in row) for row in rows)])


def time_evaluator(
    module: _core.Module,
    func_name: str,
    dev: _core.Device | None = None,
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: float = 0,
    limit_zero_time_iterations: int = 100,
    cooldown_interval_ms: float = 0,
    repeats_to_cooldown: int = 1,
    f_preproc: str = "",
) -> Callable[..., BenchmarkResult]:
    """A function that times a function of the module: it calls the function once, then times it.

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
    min_repeat_ms : float
        How many milliseconds a repetition takes at least: a shorter one counts nothing, and is done again with more
        calls, as many as the following ones then have.
    limit_zero_time_iterations : int
        How many times that is done where the clock shows no time at all.
    cooldown_interval_ms : float
        How long to wait between repetitions.
    repeats_to_cooldown : int
        How many repetitions there are between two waits.
    f_preproc : str
        Empty: nothing runs before a repetition.

    Returns
    -------
    function
        It takes the arguments of the timed function and gives the seconds of a call: `results` by repetition, their
        `mean`, `median`, `min`, `max` and `std`. Printed, it is a table of these in milliseconds.

    Raises
    ------
    UserError
        For a count below 1, a time below 0, an f_preproc.
    """
    if f_preproc:
        raise _core.UserError(f"f_preproc: nothing runs before a repetition, got {f_preproc!r}; leave it out")
    plan = TimingPlan(
        number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
    )
    check_device(dev)
    function = module[_arguments.text(func_name, "func_name")]
    return lambda *args: plan.time(lambda: function(*args))


def check_device(dev: Any) -> None:
    """UserError for a device that is not here, and for what is none; None is the CPU."""
    if dev is not None and not isinstance(dev, _core.Device):
        raise _core.UserError(f"dev: expected a Device, as headrace.cpu(), got {_arguments.kind(dev)}")
    if dev is not None:
        _arguments.present(dev, "dev")


class TimingPlan:
    """How often something is called to time it; `time_evaluator` says what the numbers mean, and what is refused."""

    def __init__(
        self,
        number: int,
        repeat: int,
        min_repeat_ms: float | None,
        limit_zero_time_iterations: int,
        cooldown_interval_ms: float,
        repeats_to_cooldown: int,
    ) -> None:
        self.number, self.repeat = _count(number, "number"), _count(repeat, "repeat")
        self.least = _seconds(0 if min_repeat_ms is None else min_repeat_ms, "min_repeat_ms")
        self.rounds_of_zero = _count(limit_zero_time_iterations, "limit_zero_time_iterations")
        self.wait = _seconds(cooldown_interval_ms, "cooldown_interval_ms")
        self.repeats_to_wait = _count(repeats_to_cooldown, "repeats_to_cooldown")

    def time(self, call: Callable[[], Any]) -> BenchmarkResult:
        """The seconds of one call, by repetition, after a first that is not timed."""
        call()
        results, number = [], self.number
        for i in range(self.repeat):
            if self.wait and i and i % self.repeats_to_wait == 0:
                sleep(self.wait)
            seconds, number = self._repetition(call, number)
            results.append(seconds / number)
        return BenchmarkResult(tuple(results))

    def _repetition(self, call: Callable[[], Any], number: int) -> tuple[float, int]:
        """Times one repetition: its seconds, and the number of calls in it."""
        zeros = 0
        while True:
            start = perf_counter()
            for _ in range(number):
                call()
            seconds = perf_counter() - start
            zeros += seconds <= 0
            if seconds >= self.least or zeros >= self.rounds_of_zero:
                return seconds, number
            enough = self.least / seconds * number if seconds > 0 else 0
            number = max(int(enough) + 1, 2 * number)


def _count(value: int, what: str) -> int:
    count = _arguments.integer(value, what)
    if count < 1:
        raise _core.UserError(f"{what}: {count} is not a count; it is 1 or more")
    return count


def _seconds(milliseconds: float, what: str) -> float:
    if not isinstance(milliseconds, Real) or isinstance(milliseconds, bool):
        raise _core.UserError(f"{what}: expected a number of milliseconds, got {_arguments.kind(milliseconds)}")
    if not (math.isfinite(milliseconds) and milliseconds >= 0):
        raise _core.UserError(f"{what}: {milliseconds} is not a number of milliseconds from 0 on")
    return float(milliseconds) / 1e3


_core.Module.time_evaluator = time_evaluator
BenchmarkResult.__module__ = "headrace.runtime.module"
