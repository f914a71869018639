"""Another runtime on the same model, for `headrace bench` and `headrace verify --against`.

    python3 -m headrace.peer onnxruntime MODEL --folder FOLDER --threads N
    python3 -m headrace.peer onnxruntime --check

The second only says whether the peer is there. FOLDER holds inputs.json ({"names": [...]}) and the arrays of these
inputs: input_0.npy, input_1.npy ... The first line on stdout is `ready VERSION`, `missing WHAT` or `error SENTENCE`.
Then each line `save` on stdin is answered by `saved N` after output_0.npy ... were written, each line `time` by the
seconds of one run: of the call that runs the model, whose inputs and outputs are bound before where the peer can
bind them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

try:
    import numpy as np
except ImportError as error:
    if __name__ != "__main__":
        raise
    print(f"missing {error}; install it for {sys.executable}", flush=True)  # the line that the programs expect
    sys.exit()

from headrace._peer_ncnn import open_ncnn
from headrace._peer_runtime import Runtime
from headrace._peer_torch import open_torch_compile

__all__ = ["main"]


def __dir__() -> list[str]:
    return __all__


def _say(line: str) -> None:
    sys.stdout.write(" ".join(line.split()) + "\n")
    sys.stdout.flush()


def _open_onnxruntime(model: str, feed: dict[str, np.ndarray], threads: int, level: str = "all") -> Runtime:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = {
        "none": levels.ORT_DISABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }[level]
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Its threads spin while a run waits for them, but not after it: they would take a processor from our next run.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    # They read the arrays' own memory.
    inputs = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    names = [output.name for output in session.get_outputs()]
    for name in names:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    # The first run made the outputs in the sizes that these inputs give; they are written again from here on.
    outputs = binding.get_outputs()
    for name, value in zip(names, outputs, strict=True):
        binding.bind_ortvalue_output(name, value)

    def run() -> None:
        session.run_with_iobinding(binding)

    def read() -> list[np.ndarray]:
        return [value.numpy() for value in outputs]

    return Runtime(onnxruntime.__version__, run, read, [inputs, outputs])


def _open_openvino(model: str, feed: dict[str, np.ndarray], threads: int, config: dict[str, str]) -> Runtime:
    import openvino

    core = openvino.Core()
    network = core.read_model(model)
    # The names of ports are the model's; sizes that it leaves open are those of the inputs.
    network.reshape({name: list(array.shape) for name, array in feed.items()})
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": str(threads), "NUM_STREAMS": "1"}
    request = core.compile_model(network, "CPU", settings | config).create_infer_request()
    # They read the arrays' own memory.
    inputs = {name: openvino.Tensor(array, shared_memory=True) for name, array in feed.items()}
    for name, value in inputs.items():
        request.set_tensor(name, value)

    def run() -> None:
        request.start_async()
        request.wait()

    run()
    # The first run made the outputs, which are written again from here on.
    outputs = [request.get_output_tensor(i) for i in range(len(network.outputs))]

    def read() -> list[np.ndarray]:
        return [np.array(value.data) for value in outputs]

    return Runtime(openvino.__version__.split("-")[0], run, read, [inputs, outputs])


def _open_openvino_f32(model: str, feed: dict[str, np.ndarray], threads: int) -> Runtime:
    return _open_openvino(model, feed, threads, {"INFERENCE_PRECISION_HINT": "f32"})


def _open_openvino_default(model: str, feed: dict[str, np.ndarray], threads: int) -> Runtime:
    return _open_openvino(model, feed, threads, {})


class _Peer(NamedTuple):
    packages: tuple[str, ...]
    open: Callable[..., Runtime]  # takes a model, its inputs by name, and the number of threads


_PEERS = {
    "onnxruntime": _Peer(("onnxruntime",), _open_onnxruntime),
    "openvino": _Peer(("openvino",), _open_openvino_f32),
    "openvino-default": _Peer(("openvino",), _open_openvino_default),  # in bfloat16 where the processor has it
    "ncnn": _Peer(("ncnn", "pnnx", "onnx"), open_ncnn),
    "torch-compile": _Peer(("torch", "onnx2torch", "torchvision", "onnx"), open_torch_compile),
}


def _serve(folder: Path, runtime: Runtime) -> None:
    for request in sys.stdin:
        try:
            if request.strip() == "save":
                runtime.run()
                outputs = runtime.outputs()
                for i, output in enumerate(outputs):
                    np.save(folder / f"output_{i}.npy", output)
                _say(f"saved {len(outputs)}")
            else:
                begin = time.perf_counter()
                runtime.run()
                _say(repr(time.perf_counter() - begin))
        except Exception as error:
            _say(f"error {error}")


def main() -> None:
    """Opens the peer and answers requests until stdin ends."""
    parser = argparse.ArgumentParser(prog="python3 -m headrace.peer", description=__doc__)
    parser.add_argument("peer", choices=sorted(_PEERS))
    parser.add_argument("model", nargs="?")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--level", choices=("none", "basic", "extended", "all"), help="of onnxruntime's optimisation")
    parser.add_argument("--check", action="store_true", help="only say whether the peer is there")
    args = parser.parse_args()
    if not args.check and (args.model is None or args.folder is None):
        parser.error("name a model and --folder")
    try:
        if args.check:
            # Finding it takes a tenth of the time that importing takes.
            for package in _PEERS[args.peer].packages:
                if importlib.util.find_spec(package) is None:
                    raise ImportError(f"there is no package {package}")
            _say(f"ready {args.peer}")
            return
        names = json.loads((args.folder / "inputs.json").read_text(encoding="utf-8"))["names"]
        feed = {name: np.load(args.folder / f"input_{i}.npy") for i, name in enumerate(names)}
        level = {} if args.level is None else {"level": args.level}
        runtime = _PEERS[args.peer].open(args.model, feed, args.threads, **level)
    except ImportError as error:
        _say(f"missing {error}; install it for {sys.executable}")
        return
    except Exception as error:
        _say(f"error {error}")
        return
    _say(f"ready {runtime.version}")
    _serve(args.folder, runtime)


if __name__ == "__main__":
    main()
