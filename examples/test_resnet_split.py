"""examples/resnet-split gives the results of the whole network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

PROGRAM = Path(__file__).parent / "resnet-split" / "resnet_split.py"


@pytest.mark.parametrize("option", ["--size", "--layers", "--requests", "--stages"])
def test_wrong_usage(option):
    done = subprocess.run(
        [sys.executable, PROGRAM, option, "0"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"argument {option}: expected an integer of 1 or more, got '0'" in done.stderr


def test_a_small_network(tmp_path):
    command = [sys.executable, PROGRAM, "--layers", "8", "--size", "28", "--requests", "10", "--stages", "2,4"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr == ""
    assert re.search(r"^whole model, one thread: [\d.]+ a second$", done.stdout, re.M)
    assert len(re.findall(r"^\d stages of [\d., ]+ ms", done.stdout, re.M)) == 2
    differences = re.findall(r"^largest difference from the whole model (.*)$", done.stdout, re.M)
    assert len(differences) == 2
    assert all(float(difference) < 1e-5 for difference in differences)  # probabilities, in float32
