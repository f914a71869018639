"""Fixtures and options that several suites of the package share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/kit"))
import build_backends

np = pytest.importorskip("numpy")


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    """The held-out digits, float32 (360, 1, 8, 8)."""
    return np.load(Path(__file__).parents[2] / "models" / "digits_images.npy")


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits model as an artifact for one image at a time."""
    import headrace as hr

    path = tmp_path_factory.mktemp("one_digit") / "digits.so"
    digits = Path(__file__).parents[2] / "models" / "digits.onnx"
    hr.compile(digits, shapes={"x": (1, 1, 8, 8)}, threads=1, output=path)
    return path


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stand_in: looks into the runtime of pipelines that stands in for Headrace's")
    config.addinivalue_line("markers", "backends(*names): skipped where the build leaves out one of these backends")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in (name for marker in item.iter_markers("backends") for name in marker.args):
        if why := build_backends.left_out(sys.executable, "-m", "headrace").get(name):
            pytest.skip(why)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write expectations that are files, in place of comparing")
