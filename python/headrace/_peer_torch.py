"""torch.compile as a peer of headrace.peer: onnx2torch makes a module of the ONNX file, Inductor compiles it."""

from __future__ import annotations

import os

import numpy as np

from headrace._peer_runtime import Runtime, captured_stderr, read_signature


def _module_of(model: str) -> object:
    import onnx
    import onnx2torch

    try:
        return onnx2torch.convert(onnx.load(model)).eval()
    except NotImplementedError as error:
        raise ValueError(f"onnx2torch cannot convert the model: {error}") from error


def open_torch_compile(model: str, feed: dict[str, np.ndarray], threads: int) -> Runtime:
    """Converts and compiles the model; the first run, which compiles, is done."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no processes of its own, which would stay
    with captured_stderr():
        return _opened(model, feed, threads)


def _opened(model: str, feed: dict[str, np.ndarray], threads: int) -> Runtime:
    import torch

    torch.set_num_threads(threads)
    module = _module_of(model)
    # They read the arrays' own memory.
    inputs = [torch.from_numpy(feed[name]) for name in read_signature(model).inputs]
    # Weights are constants, so that Inductor folds and packs them before the first run.
    compiled = torch.compile(module, options={"freezing": True})
    results: list[torch.Tensor] = []

    def run() -> None:
        with torch.inference_mode():
            found = compiled(*inputs)
        results[:] = [found] if isinstance(found, torch.Tensor) else found

    def read() -> list[np.ndarray]:
        return [np.array(value) for value in results]

    run()
    return Runtime(torch.__version__.split("+")[0], run, read, [inputs])
