"""The programs that pip installs beside the package."""

import subprocess
import sys
from pathlib import Path

import pytest
from headrace import _programs


@pytest.mark.parametrize("name", ["headrace", "headrace_opt"])
def test_becomes_the_program(name, monkeypatch):
    started = []
    monkeypatch.setattr(_programs.os, "execv", lambda path, words: started.append((Path(path), words)))
    monkeypatch.setattr(sys, "argv", ["/venv/bin/program", "inspect", "a b.so"])
    monkeypatch.delenv("HEADRACE_PYTHON", raising=False)
    getattr(_programs, name)()
    program = name.replace("_", "-")
    assert started == [(Path(_programs.__file__).parent / "bin" / program, [program, "inspect", "a b.so"])]
    assert _programs.os.environ["HEADRACE_PYTHON"] == sys.executable


def test_says_what_is_missing():
    code = "import headrace._programs as p, pathlib; p._FOLDER = pathlib.Path('/nowhere'); p.headrace()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "headrace: cannot start '/nowhere/headrace': No such file or directory" in done.stderr
