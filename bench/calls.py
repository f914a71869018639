#!/usr/bin/env python3
"""What a call between Python and C++ costs, beside apache-tvm-ffi in the same process where that is installed.

    bench/calls.py [--rounds 15] [--calls 100000]

Rounds are interleaved; each line is the median of the rounds, in nanoseconds a call. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import timeit
from collections.abc import Callable
from typing import Any


def ours() -> dict[str, Callable[..., Any]]:
    """Headrace's functions: one of C++, and one of Python that C++ calls."""
    import headrace as hr

    return {"Python -> C++": hr.get_global_func("testing.Nop"), "Python -> C++ -> Python": hr.convert(_nothing)}


def peers() -> dict[str, Callable[..., Any]]:
    """apache-tvm-ffi's; none where it is not installed."""
    try:
        import tvm_ffi
    except ImportError:
        return {}
    return {
        "Python -> C++": tvm_ffi.get_global_func("testing.nop"),
        "Python -> C++ -> Python": tvm_ffi.convert(_nothing),
    }


def _nothing(*args: Any) -> None:
    pass


def measure(
    functions: dict[tuple[str, str], Callable[..., Any]], rounds: int, calls: int
) -> dict[tuple[str, str], float]:
    """Nanoseconds a call with two ints, by function."""
    times: dict[tuple[str, str], list[float]] = {key: [] for key in functions}
    for _ in range(rounds):
        for key, function in functions.items():
            seconds = timeit.timeit("f(1, 2)", globals={"f": function}, number=calls)
            times[key].append(seconds / calls * 1e9)
    return {key: statistics.median(values) for key, values in times.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=100_000)
    args = parser.parse_args()
    functions = {(what, "headrace"): f for what, f in ours().items()}
    functions |= {(what, "tvm-ffi"): f for what, f in peers().items()}
    found = measure(functions, args.rounds, args.calls)
    for (what, who), nanoseconds in found.items():
        peer = found.get((what, "tvm-ffi"))
        ratio = f"  {nanoseconds / peer:.2f}x of tvm-ffi" if peer and who == "headrace" else ""
        print(f"{what:24} {who:9} {nanoseconds:7.0f} ns{ratio}")


if __name__ == "__main__":
    main()
