"""examples/serve without Ray: its help, wrong usage, and the packages that are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

PROGRAM = Path(__file__).resolve().parent / "serve" / "serve_artifact.py"
# Runs the program as where Ray is not installed.
WITHOUT_RAY = """
import importlib.util, runpy, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("ray", "starlette") else find_spec(name, *rest)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_RAY, str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_help_and_usage_need_no_ray():
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a file that headrace compile wrote" in done.stdout
    done = run("model.so", "--port", "x")
    assert (done.returncode, "argument --port: invalid int value: 'x'" in done.stderr) == (2, True)


def test_missing_packages_are_named_with_their_installation():
    done = run("model.so")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "serve_artifact.py: not installed: ray, starlette; pip install '.[ray]'\n"
