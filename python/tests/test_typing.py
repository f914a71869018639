"""The stubs: mypy passes on the examples of README and docs, and finds names and arguments that are not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/docs"))
from run_snippets import read_snippets  # noqa: E402

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

# mypy does not look at what a class decorator gives.
UNSEEN = '"CustomConst" not callable'


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def mypy_errors(folder: Path, cache: Path) -> list[str]:
    """The errors that mypy finds in the Python files of a folder."""
    pytest.importorskip("mypy")
    config = folder / "mypy.ini"
    optional = "[mypy-ray.*,torch.*]\nignore_missing_imports = True\n"
    config.write_text("[mypy]\n[mypy-headrace.*]\nfollow_imports = silent\n" + optional)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", cache, *folder.glob("*.py")],
        env={**os.environ, "MYPYPATH": str(Path(hr.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_examples_pass_mypy(tmp_path: Path, cache: Path) -> None:
    count = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for snippet in read_snippets(page):
            if snippet.language == "python":
                count += 1
                (tmp_path / f"{page.stem.replace('-', '_')}_{snippet.line}.py").write_text(snippet.text)
    assert count > 25
    assert [error for error in mypy_errors(tmp_path, cache) if UNSEEN not in error] == []


def test_mypy_finds_mistakes(tmp_path: Path, cache: Path) -> None:
    program = """\
import headrace as hr
from headrace import relay

x = relay.var(hr.__version__, shape=(2,))
relay.nn.conv2x(x)
relay.nn.dense(x, x, unit=4)
relay.nn.softmax(x, axis="last")
relay.Call(x, [x]).arguments
hr.IRModule.from_exp(x)
relay.transform.FoldConstants()
hr.get_global_func(1)
hr.runtime.load_module("model.so").export_library(1)
hr.te.nothing
hr.te.power(hr.te.Add(hr.te.size_var("n"), 1) + 2, 2)
"""
    (tmp_path / "program.py").write_text(program)
    found = [int(error.split(":")[1]) for error in mypy_errors(tmp_path, cache)]
    assert found == list(range(5, 14))
