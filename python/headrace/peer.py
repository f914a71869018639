"""Another runtime on the same model, for `headrace bench` and `headrace verify --against`.

    python3 -m headrace.peer onnxruntime MODEL --folder FOLDER --threads N
    python3 -m headrace.peer onnxruntime --check

The second only says whether the peer is there. FOLDER holds names.txt (the inputs' names, one a line) and input_0.npy,
input_1.npy ... The first line on stdout is `ready VERSION`, `missing WHAT` or `error SENTENCE`. Then each line `save`
on stdin is answered by `saved N` after output_0.npy ... were written, each line `time` by the seconds of one run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

__all__ = ["main"]


def __dir__() -> list[str]:
    return __all__


def _say(line: str) -> None:
    sys.stdout.write(" ".join(line.split()) + "\n")
    sys.stdout.flush()


def _open_onnxruntime(model: str, feed: dict[str, np.ndarray], threads: int) -> tuple[str, Callable[[], list]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda: session.run(None, feed)


# By the name of the package.
_PEERS = {"onnxruntime": _open_onnxruntime}


def _serve(folder: Path, run: Callable[[], list]) -> None:
    for request in sys.stdin:
        try:
            if request.strip() == "save":
                outputs = run()
                for i, output in enumerate(outputs):
                    np.save(folder / f"output_{i}.npy", output)
                _say(f"saved {len(outputs)}")
            else:
                begin = time.perf_counter()
                run()
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
    parser.add_argument("--check", action="store_true", help="only say whether the peer is there")
    args = parser.parse_args()
    if not args.check and (args.model is None or args.folder is None):
        parser.error("name a model and --folder")
    try:
        if args.check:
            _say(f"ready {importlib.import_module(args.peer).__version__}")
            return
        names = (args.folder / "names.txt").read_text().splitlines()
        feed = {name: np.load(args.folder / f"input_{i}.npy") for i, name in enumerate(names)}
        version, run = _PEERS[args.peer](args.model, feed, args.threads)
    except ImportError as error:
        _say(f"missing {error}; install it for {sys.executable}")
        return
    except Exception as error:
        _say(f"error {error}")
        return
    _say(f"ready {version}")
    _serve(args.folder, run)


if __name__ == "__main__":
    main()
