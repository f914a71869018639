#!/usr/bin/env python3
"""Measures calls between Python and C++, and C++ and C++, beside apache-tvm-ffi where that is installed; and the
package's own calls: `relay.nn.dense(x, w)`, and `f(x)` of a compiled model of one op.

    bench/calls.py [--rounds 15] [--calls 100000]
    bench/calls.py --against FOLDER [--rounds 15]

One process; rounds are interleaved; each line is the median of the rounds, in nanoseconds a call. Run it on an
idle machine. The calls in C++ (bench/calls.cc) are compiled here, with CXX or g++; without it they are left out.

With --against, processes of this package and of the one in FOLDER (as PYTHONPATH names it) take turns. Each line has
the best and the median of both; one line is the time that `import headrace` takes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
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


def package() -> dict[str, Timer]:
    """Calls that users of the package make: of an op's function, and of a model of one op with four floats."""
    import headrace as hr
    import numpy as np
    from headrace import relay

    x, weight = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.relay"
        model.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { add(%x, %x) }\n')
        run = hr.compile(model, threads=1)
    names = {"dense": relay.nn.dense, "x": x, "weight": weight, "run": run, "data": np.ones(4, "float32")}

    def repeated(call: str, share: int) -> Timer:
        return lambda calls: (
            timeit.timeit(call, globals=names, number=max(1, calls // share)) / max(1, calls // share) * 1e9
        )

    return {"relay.nn.dense(x, w)": repeated("dense(x, weight)", 20), "f(x) of one op": repeated("run(data)", 4)}


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


def measure_package(calls: int) -> dict[str, float]:
    """Nanoseconds of importing the package and of its calls, in this process, which imports it first here."""
    begin = time.perf_counter()
    import headrace  # noqa: F401

    found = {"import headrace": (time.perf_counter() - begin) * 1e9}
    for name, run in package().items():
        run(calls // 10)
        found[name] = min(run(calls) for _ in range(5))
    return found


def compare(folder: str, rounds: int, calls: int) -> None:
    """Prints what the package costs beside the one in a folder, by processes that take turns."""
    command = [sys.executable, __file__, "--once", "--calls", str(calls)]
    found: dict[str, list[dict[str, float]]] = {"other": [], "this": []}
    for _ in range(rounds):
        for which, rows in found.items():
            path = {"PYTHONPATH": folder} if which == "other" else {}
            done = subprocess.run(command, env={**os.environ, **path}, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout))
    for name in found["this"][0]:
        of = {which: [row[name] / 1e3 for row in rows] for which, rows in found.items()}
        best, median = ({which: pick(times) for which, times in of.items()} for pick in (min, statistics.median))
        print(
            f"{name:22} best {best['other']:9.2f} -> {best['this']:9.2f} us, {best['this'] / best['other']:.2f}x;"
            f" median {median['other']:9.2f} -> {median['this']:9.2f} us, {median['this'] / median['other']:.2f}x"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--against", metavar="FOLDER", help="compare with the package in a folder")
    parser.add_argument("--once", action="store_true", help="print the package's own calls as JSON, measured once")
    args = parser.parse_args()
    if args.once:
        print(json.dumps(measure_package(args.calls)))
        return
    if args.against:
        compare(args.against, args.rounds, args.calls)
        return
    timers = {(what, "headrace"): f for what, f in (ours() | package()).items()}
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
