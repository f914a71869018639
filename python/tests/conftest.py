"""Fixtures and options that several suites of the package share."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    """The held-out digits, float32 (360, 1, 8, 8)."""
    return np.load(Path(__file__).parents[2] / "models" / "digits_images.npy")


@functools.cache
def left_out_backends() -> dict[str, str]:
    """The backends that this build leaves out, and why each cannot be used."""
    command = [sys.executable, "-m", "headrace", "backend", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows = json.loads(done.stdout)["backends"]
    return {row["name"]: row["missing"] for row in rows if row["missing"].startswith("left out of this build")}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stand_in: looks into the runtime of pipelines that stands in for Headrace's")
    config.addinivalue_line("markers", "backends(*names): skipped where the build leaves out one of these backends")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in (name for marker in item.iter_markers("backends") for name in marker.args):
        if name in left_out_backends():
            pytest.skip(f"the backend {name} was {left_out_backends()[name]}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write expectations that are files, in place of comparing")
