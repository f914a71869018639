"""Helpers of the suites of `headrace.ray`: a local cluster of two nodes, and functions that stages import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
STORE_BYTES = 100 << 20
OWN = "front"  # resources front0, front1 and front2 of the first node: neighbours with these are actors of their own


def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes on this machine, whose labels are pool=front and pool=back, and this process in it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    from ray.cluster_utils import Cluster

    own = {f"{OWN}{number}": 1 for number in range(3)}
    common = {"num_cpus": 4, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), before])  # for the processes of both nodes
    cluster = Cluster(initialize_head=True, head_node_args={**common, "labels": {"pool": "front"}, "resources": own})
    try:
        cluster.add_node(**common, labels={"pool": "back"}, resources={"rear": 1})
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        ray.test_cluster = cluster
        yield ray
    finally:
        os.environ["PYTHONPATH"] = before
        ray.shutdown()
        cluster.shutdown()


def add_one(x: Any) -> Any:
    return x + 1


def double(x: Any) -> Any:
    return x * 2


def as_batch(image: np.ndarray) -> np.ndarray:
    return image[None]


def best(scores: np.ndarray) -> int:
    return int(scores.argmax())


def refuse_negative(x: int) -> int:
    if x < 0:
        raise ValueError("below zero")
    return x


def die_at_seven(x: int) -> int:
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def lock_of(x: int) -> Any:
    import threading

    return threading.Lock()


def fail_to_load() -> None:
    raise RuntimeError("not in this process")


class Unreadable:
    """An object that can be pickled and cannot be made again."""

    def __reduce__(self) -> Any:
        return fail_to_load, ()


def unreadable(x: int) -> Any:
    return Unreadable() if x < 0 else x


def as_record(x: int) -> dict[str, int]:
    """A dict whose only key is the name of the next stage's input."""
    return {"x": x}


def of_record(x: dict[str, int]) -> int:
    return x["x"] + 1


def batch_size(xs: list[int]) -> list[int]:
    return [len(xs)] * len(xs)


def counted(x: int) -> int:
    """Writes one line for each call to the file that a test names."""
    with Path(os.environ["HEADRACE_TEST_CALLS"]).open("a") as file:
        file.write(f"{x}\n")
    time.sleep(0.002)
    return x


def grow(x: int) -> np.ndarray:
    """An array that is too large to travel within Ray's messages, so it lies in the object store of its node."""
    return np.full(200_000, x, np.int64)


def total(x: np.ndarray) -> int:
    time.sleep(0.01)
    return int(x.sum())
