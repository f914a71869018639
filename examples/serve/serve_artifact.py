"""Serves an artifact over HTTP with Ray Serve.

    pip install '.[ray]'
    python3 examples/serve/serve_artifact.py model.so --replicas 2 --port 8000
    curl -d '{"x": [[[0.0, 0.5], [0.5, 1.0]]]}' http://127.0.0.1:8000/

A request is the row of each input, without the batch dimension; the answer is the row of each output. Requests that
arrive together run together: a replica waits up to `--wait` seconds until the artifact's batch is full, and fills it
with zeros. GET /stats says what a replica has done. Ray's own metrics have headrace_requests, headrace_batch_rows and
headrace_run_seconds, and http://127.0.0.1:8000/-/healthz says whether the server is up. Serve replaces a replica whose
health check fails: the check runs the artifact on zeros and compares with what it gave at the start.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import headrace as hr
import numpy as np


def parser() -> argparse.ArgumentParser:
    """The options of the program."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("artifact", help="a file that headrace compile wrote")
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--replicas", type=int, default=1)
    options.add_argument("--wait", type=float, default=0.01, help="the seconds that a batch waits for more requests")
    options.add_argument("--address", default="local", help="the cluster: local starts one, auto finds one")
    return options


# Help, wrong usage and missing packages are reported before the packages are imported.
if __name__ == "__main__":
    parser().parse_args()
    missing = [name for name in ("ray", "starlette") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{parser().prog}: not installed: {', '.join(missing)}; pip install '.[ray]'", file=sys.stderr)
        sys.exit(4)

import headrace.ray  # noqa: E402
import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.util import metrics  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import JSONResponse  # noqa: E402

APPLICATION = "headrace"
_JSON_KINDS = {
    type(None): "null",
    bool: "true or false",
    int: "integers",
    float: "fractions",
    str: "text",
    dict: "an object",
    list: "lists of different lengths",
}


def array_of_json(value: Any, dtype: np.dtype, what: str) -> np.ndarray:
    """Nested lists of numbers as an array. Raises ValueError for values that the dtype does not hold."""
    array = np.array(value, object)
    taken = {"b": {bool}, "i": {int}, "u": {int}}.get(dtype.kind, {int, float})
    wrong = sorted(_JSON_KINDS[kind] for kind in set(map(type, array.flat)) - taken)
    if wrong:
        raise ValueError(f"{what} has {' and '.join(wrong)}, where it takes {dtype}")
    if dtype.kind in "iu" and array.size:
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"{what} has a number that {dtype} does not hold; it takes {limits.min} to {limits.max}")
    try:
        with np.errstate(over="ignore"):
            made = array.astype(dtype)
    except OverflowError:  # an integer of hundreds of digits
        made = np.array(np.inf)
    if not np.isfinite(made).all():
        raise ValueError(f"{what} has a number that is not finite as {dtype}")
    return made


def json_of_row(made: Mapping[str, np.ndarray]) -> dict[str, Any] | str:
    """The outputs as JSON has them; an error's text if they have numbers that JSON does not have."""
    for name, values in made.items():
        if not np.isfinite(values).all():
            return f"output '{name}' has numbers that are not finite for these inputs, and JSON has none"
    return {name: values.tolist() for name, values in made.items()}


def check_artifact(path: str) -> None:
    """Raises UserError for a file that is not an artifact, or whose inputs and outputs do not have one batch."""
    model = hr.load(path)
    shapes = {spec.name: tuple(spec.shape) for spec in [*model.inputs, *model.outputs]}
    firsts = {shape[:1] for shape in shapes.values()}
    if not model.inputs or len(firsts) != 1 or () in firsts:
        listed = ", ".join(f"'{name}' {shape}" for name, shape in shapes.items())
        raise hr.UserError(
            f"{path}: the inputs and outputs do not have one batch as their first dimension, which requests share: "
            f"{listed}"
        )


@serve.deployment(max_ongoing_requests=256, health_check_period_s=5, health_check_timeout_s=10)
class Served:
    """A replica: an artifact, its batches and its numbers."""

    def __init__(self, artifact: headrace.ray.ArtifactRef, wait_seconds: float) -> None:
        model = hr.load(artifact.local_path(), program=artifact.program)
        self._inputs = {spec.name: (tuple(spec.shape[1:]), spec.dtype) for spec in model.inputs}
        self._predict = headrace.ray.Predictor(artifact, threads=0)
        self._batch = int(model.inputs[0].shape[0])
        self._run.set_max_batch_size(self._batch)
        self._run.set_batch_wait_timeout_s(wait_seconds)
        self._lock = threading.Lock()
        self._stats = {"batch": self._batch, "requests": 0, "refused": 0, "runs": 0}
        self._requests = metrics.Counter("headrace_requests", "Requests that were answered.")
        self._rows = metrics.Histogram("headrace_batch_rows", "Rows of each run.", boundaries=[1, 2, 4, 8, 16, 32, 64])
        self._seconds = metrics.Histogram(
            "headrace_run_seconds", "Seconds of each run.", boundaries=[1e-4, 1e-3, 1e-2, 0.1, 1]
        )
        self._expected = self._on_zeros()

    async def __call__(self, request: Request) -> JSONResponse:
        """Answers a request: GET /stats, or the inputs as JSON."""
        if request.method == "GET":
            known = request.url.path == "/stats"
            return JSONResponse(
                self._stats if known else {"error": "GET /stats, or POST inputs"}, 200 if known else 404
            )
        try:
            row = self._read(await request.json())
        except (ValueError, RecursionError) as error:  # JSON that is none or too deep, or inputs that do not fit
            return self._refuse(str(error))
        made = await self._run(row)
        return self._refuse(made) if isinstance(made, str) else JSONResponse(made)

    def _refuse(self, why: str) -> JSONResponse:
        self._stats["refused"] += 1
        return JSONResponse({"error": why}, 400)

    def _read(self, given: Any) -> dict[str, np.ndarray]:
        if not isinstance(given, Mapping) or set(given) != set(self._inputs):
            raise ValueError(f"expected an object with the inputs {', '.join(self._inputs)}")
        row = {}
        for name, (shape, dtype) in self._inputs.items():
            row[name] = array_of_json(given[name], np.dtype(dtype), f"input '{name}'")
            if row[name].shape != shape:
                raise ValueError(f"input '{name}' has shape {row[name].shape}; it is {shape}")
        return row

    @serve.batch
    async def _run(self, rows: list[dict[str, np.ndarray]]) -> list[dict[str, Any] | str]:
        """Runs the artifact once for the requests that arrived together; returns each one's outputs, or an error."""
        begin = time.perf_counter()
        with self._lock:
            made = self._predict({name: np.stack([row[name] for row in rows]) for name in self._inputs})
        self._seconds.observe(time.perf_counter() - begin)
        self._rows.observe(len(rows))
        self._requests.inc(len(rows))
        self._stats["requests"] += len(rows)
        self._stats["runs"] += 1
        return [json_of_row({name: values[index] for name, values in made.items()}) for index in range(len(rows))]

    def check_health(self) -> None:
        """Raises an error, upon which Serve replaces the replica, if zeros do not give what they gave at the start."""
        made = self._on_zeros()
        for name, values in self._expected.items():
            if not np.array_equal(made[name], values, equal_nan=True):
                raise RuntimeError(f"output '{name}' for zeros differs from what it was at the start")

    def _on_zeros(self) -> dict[str, np.ndarray]:
        zeros = {name: np.zeros((1, *shape), dtype) for name, (shape, dtype) in self._inputs.items()}
        with self._lock:
            return self._predict(zeros)


def main() -> None:
    """Serves until the program gets SIGINT or SIGTERM."""
    args = parser().parse_args()
    try:
        check_artifact(args.artifact)
    except hr.UserError as error:
        parser().exit(2, f"{parser().prog}: {error}\n")
    stopped = threading.Event()
    ray.init(address=args.address, log_to_driver=False)
    for number in (signal.SIGINT, signal.SIGTERM):  # after ray.init, which sets handlers of its own
        signal.signal(number, lambda *_: stopped.set())
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": args.port})
        artifact = headrace.ray.artifact_ref(args.artifact)
        serve.run(Served.options(num_replicas=args.replicas).bind(artifact, args.wait), name=APPLICATION)
        print(f"serving {artifact.name} at http://127.0.0.1:{args.port}/", flush=True)
        stopped.wait()
    finally:
        if args.address == "local":
            serve.shutdown()
        else:  # other applications of the cluster go on
            serve.delete(APPLICATION)
        ray.shutdown()
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
