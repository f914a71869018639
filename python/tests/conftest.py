"""Fixtures and options that several suites of the package share."""

from pathlib import Path

import pytest

np = pytest.importorskip("numpy")


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    """The held-out digits, float32 (360, 1, 8, 8)."""
    return np.load(Path(__file__).parents[2] / "models" / "digits_images.npy")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stand_in: looks into the runtime of pipelines that stands in for Headrace's")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write expectations that are files, in place of comparing")
