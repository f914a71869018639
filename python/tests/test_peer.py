"""headrace.peer, which the programs start: the one line that they read where a package is missing."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")


def test_without_numpy_it_says_what_to_install(tmp_path):
    missing = tmp_path / "numpy.py"
    missing.write_text("raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "headrace.peer", "onnxruntime", "--check"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"missing No module named 'numpy'; install it for {sys.executable}\n"
