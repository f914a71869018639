#!/usr/bin/env python3
"""What a call between Python and C++ costs, and between C++ and C++, beside apache-tvm-ffi where that is installed.

    bench/calls.py [--rounds 15] [--calls 100000]

One process; rounds are interleaved; each line is the median of the rounds, in nanoseconds a call. Run it on an
idle machine. The calls in C++ (bench/calls.cc) are compiled here, with CXX or g++; without it they are left out.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Takes how many calls to make, gives nanoseconds a call.
Timer = Callable[[int], float]


def timer(function: Callable[..., Any]) -> Timer:
    """Calls of a function from Python with two ints."""
    return lambda calls: timeit.timeit("f(1, 2)", globals={"f": function}, number=calls) / calls * 1e9


def ours() -> dict[str, Timer]:
    """Headrace's functions: one of C++, and one of Python that C++ calls."""
    import headrace as hr

    nop = hr.get_global_func("testing.Nop")
    return {"Python -> C++": timer(nop), "Python -> C++ -> Python": timer(hr.convert(_nothing))}


def peers() -> dict[str, Timer]:
    """apache-tvm-ffi's; none where it is not installed."""
    try:
        import tvm_ffi
    except ImportError:
        return {}
    nop = tvm_ffi.get_global_func("testing.nop")
    return {"Python -> C++": timer(nop), "Python -> C++ -> Python": timer(tvm_ffi.convert(_nothing))}


def compiled(folder: Path, is_peer: bool) -> Timer | None:
    """The calls in C++, of Headrace or apache-tvm-ffi; None without a compiler, or without the latter."""
    compiler = os.environ.get("CXX") or shutil.which("g++-12") or shutil.which("g++")
    if compiler is None:
        return None
    if is_peer:
        try:
            import tvm_ffi.libinfo as info
        except ImportError:
            return None
        library = Path(info.find_libtvm_ffi())
        options = ["-DCALLS_OF_TVM_FFI", f"-I{info.find_include_path()}", f"-I{info.find_dlpack_include_path()}"]
    else:
        library = loaded("libheadrace_rt.so")
        options = ["-DFMT_HEADER_ONLY", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{ROOT / 'third_party'}"]
    output = folder / f"calls{int(is_peer)}.so"
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC", *options, ROOT / "bench/calls.cc", library]
    subprocess.run([compiler, *flags, f"-Wl,-rpath,{library.parent}", "-o", output], check=True)
    function = ctypes.CDLL(str(output)).sum_of_calls
    function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64]

    def run(calls: int) -> float:
        begin = time.perf_counter()
        total = function(calls)
        seconds = time.perf_counter() - begin
        if total != calls * (calls - 1) // 2:
            raise SystemExit(f"the calls in C++ gave {total}")
        return seconds / calls * 1e9

    return run


def loaded(name: str) -> Path:
    """The file of a library that this process has."""
    with Path("/proc/self/maps").open() as maps:
        return next(Path(line.split()[-1]) for line in maps if line.rstrip().endswith(f"/{name}"))


def _nothing(*args: Any) -> None:
    pass


def measure(timers: dict[tuple[str, str], Timer], rounds: int, calls: int) -> dict[tuple[str, str], float]:
    """Nanoseconds a call with two ints, by function."""
    times: dict[tuple[str, str], list[float]] = {key: [] for key in timers}
    for _ in range(rounds):
        for key, run in timers.items():
            times[key].append(run(calls))
    return {key: statistics.median(values) for key, values in times.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=100_000)
    args = parser.parse_args()
    timers = {(what, "headrace"): f for what, f in ours().items()}
    timers |= {(what, "tvm-ffi"): f for what, f in peers().items()}
    with tempfile.TemporaryDirectory() as folder:
        for who in ("headrace", "tvm-ffi"):
            run = compiled(Path(folder), who == "tvm-ffi")
            if run is not None:
                timers["C++ -> C++", who] = run
    found = measure(timers, args.rounds, args.calls)
    for (what, who), nanoseconds in found.items():
        peer = found.get((what, "tvm-ffi"))
        ratio = f"  {nanoseconds / peer:.2f}x of tvm-ffi" if peer and who == "headrace" else ""
        print(f"{what:24} {who:9} {nanoseconds:7.1f} ns{ratio}")


if __name__ == "__main__":
    main()
