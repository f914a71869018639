"""ncnn as a peer of headrace.peer: pnnx converts the ONNX file to ncnn's network, ncnn runs it in float32.

The package pnnx holds a program that needs no other package, but declares PyTorch, which only its functions for
PyTorch's models use. So it is found without being imported, and `pip install --no-deps pnnx` is enough.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from headrace._peer_runtime import Runtime, captured_stderr, read_signature

# pnnx takes the shape of each input with its type. ncnn's ids have 32 bits.
TYPES = {"float32": "f32", "int64": "i64", "int32": "i32"}


def _pnnx() -> Path:
    spec = importlib.util.find_spec("pnnx")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("there is no package pnnx (pip install --no-deps pnnx)")
    return Path(spec.submodule_search_locations[0]) / "pnnx"


def _option(index: int, name: str, array: np.ndarray) -> str:
    if str(array.dtype) not in TYPES:
        raise ValueError(f"ncnn takes inputs of {', '.join(TYPES)}; '{name}' (input {index}) is of {array.dtype}")
    return f"[{','.join(map(str, array.shape))}]{TYPES[str(array.dtype)]}"


def _convert(model: str, feed: dict[str, np.ndarray], folder: Path) -> str:
    """Writes the files net.param and net.bin, and returns the Python program that pnnx writes beside them."""
    import onnx

    shapes = ",".join(_option(i, name, array) for i, (name, array) in enumerate(feed.items()))
    files = {
        "ncnnparam": "net.param",
        "ncnnbin": "net.bin",
        "ncnnpy": "net.py",
        "pnnxparam": "pnnx.param",
        "pnnxbin": "pnnx.bin",
        "pnnxpy": "pnnx.py",
        "pnnxonnx": "pnnx.onnx",
    }
    words = [f"{key}={folder / name}" for key, name in files.items()]
    # pnnx reads no weights from other files, and writes a file beside the model, whatever its options say.
    copy = folder / "model.onnx"
    onnx.save(onnx.load(model), copy)
    command = [_pnnx(), copy, "fp16=0", f"inputshape={shapes}", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    program = folder / "net.py"
    if done.returncode != 0 or not program.is_file():
        last = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()][-1:]
        ended = f"signal {signal.Signals(-done.returncode).name}" if done.returncode < 0 else f"code {done.returncode}"
        raise ValueError(f"pnnx cannot convert the model: it ended with {ended} after '{''.join(last)}'")
    return program.read_text(encoding="utf-8")


def _batch_axes(program: str, kind: str, count: int) -> list[int]:
    """The batch axes of the inputs ("in") or outputs ("out"), which only the program says that pnnx writes."""
    found = re.findall(rf"\b{kind}(\d+)\.numpy\((?:\), )?batch_index=(\d+)\)", program)
    axes = {int(index): int(axis) for index, axis in found}
    if sorted(axes) != list(range(count)):
        raise ValueError(f"the program that pnnx writes has {kind}: {sorted(axes)}, and the model has {count}")
    return [axes[i] for i in range(count)]


def _extract(extractor: Any, count: int) -> list[Any]:
    """The outputs; the first one runs the layers that it needs."""
    results = []
    for i in range(count):
        code, value = extractor.extract(f"out{i}")
        if code != 0:
            raise ValueError(f"ncnn cannot compute output {i} (code {code})")
        results.append(value)
    return results


def _open_net(folder: Path, threads: int) -> Any:
    import ncnn

    net = ncnn.Net()
    option = net.opt
    option.num_threads = threads
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage"):
        setattr(option, f"use_{name}", False)
    # Memory that a run gives back is used by the next one. A result belongs to the pool until it is replaced.
    pools = [ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()]
    option.blob_allocator, option.workspace_allocator = pools
    for pool in pools:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))  # stays until the process ends: the net frees memory to it
    with captured_stderr() as lines:
        failed = net.load_param(str(folder / "net.param")) != 0 or net.load_model(str(folder / "net.bin")) != 0
    if failed:
        raise ValueError(
            f"ncnn cannot load what pnnx made of the model: {'; '.join(lines[:1]) or 'it does not say why'}"
        )
    return net


def open_ncnn(model: str, feed: dict[str, np.ndarray], threads: int) -> Runtime:
    """Converts and loads the model; the first run is done."""
    import ncnn

    signature = read_signature(model)
    feed = {name: feed[name] for name in signature.inputs}
    for name, dtype in signature.outputs.items():
        if dtype != "float32":
            raise ValueError(f"ncnn gives outputs of float32; '{name}' is of {dtype}")
    with tempfile.TemporaryDirectory() as folder:
        program = _convert(model, feed, Path(folder))
        net = _open_net(Path(folder), threads)
    axes = _batch_axes(program, "in", len(feed))
    result_axes = _batch_axes(program, "out", len(signature.outputs))
    arrays = [array.astype(np.int32) if array.dtype == np.int64 else array for array in feed.values()]
    inputs = [ncnn.Mat(array, batch_index=axis).clone() for array, axis in zip(arrays, axes, strict=True)]
    results: list[Any] = []

    def run() -> None:
        extractor = net.create_extractor()
        for i, value in enumerate(inputs):
            extractor.input(f"in{i}", value)
        results.clear()
        results.extend(_extract(extractor, len(result_axes)))

    def read() -> list[np.ndarray]:
        return [np.array(value.numpy(batch_index=axis)) for value, axis in zip(results, result_axes, strict=True)]

    run()
    return Runtime(ncnn.__version__, run, read, [arrays, inputs, net])
