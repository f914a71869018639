"""examples/byoc-python: a package with a backend is found by its name, where a model is compiled and where it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/kit"))
import build_backends

pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pytest.importorskip("setuptools", reason="setuptools, which reads the example's pyproject.toml, is not installed")

EXAMPLE = Path(__file__).resolve().parent / "byoc-python"
PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(multiply(exp(%x), tanh(%x))) }
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment variables in which the example's package is installed: setuptools wrote what pip would."""
    folder = tmp_path_factory.mktemp("installed")
    project = tmp_path_factory.mktemp("project")
    for file in EXAMPLE.iterdir():
        (project / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-c", "import setuptools; setuptools.setup()", "-q", "egg_info", "--egg-base", folder]
    subprocess.run(command, cwd=project, check=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(folder), os.environ.get("PYTHONPATH", "")])}


def run_python(environment, text, *args):
    command = [sys.executable, *(["-c", text] if text else []), *map(str, args)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_it_is_as_short_as_the_guide_says():
    assert len((EXAMPLE / "elementwise.py").read_text().splitlines()) <= 60


def test_a_file_that_one_process_compiled_runs_in_another(environment, tmp_path):
    (tmp_path / "model.relay").write_text(PROGRAM)
    compiled = run_python(
        environment,
        "import sys; import headrace as hr; hr.compile(sys.argv[1], backends=['elementwise'], output=sys.argv[2])",
        tmp_path / "model.relay",
        tmp_path / "model.so",
    )
    assert compiled.returncode == 0, compiled.stderr
    text = (
        "import sys; import headrace as hr; import numpy as np; f = hr.load(sys.argv[1], fallback='none')\n"
        "print(f(np.float32([[0, 1, 2], [3, 4, 5]])).numpy().tolist())"
    )
    ran = run_python(environment, text, tmp_path / "model.so")
    assert ran.returncode == 0, ran.stderr
    x = np.float64([[0, 1, 2], [3, 4, 5]])
    y = np.exp(x) * np.tanh(x)
    expected = np.exp(y - y.max(1, keepdims=True))
    np.testing.assert_allclose(json.loads(ran.stdout), expected / expected.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    # Without the package the file runs natively, and says so.
    text = text.replace("fallback='none'", "fallback='native'") + "\nprint(f.fallbacks[0]['backend'])"
    elsewhere = run_python(dict(os.environ), text, tmp_path / "model.so")
    values, backend = elsewhere.stdout.splitlines()
    assert backend == "elementwise"
    np.testing.assert_allclose(json.loads(values), json.loads(ran.stdout), rtol=1e-5, atol=1e-7)


def test_the_program_in_python_finds_it(environment, tmp_path):
    (tmp_path / "model.relay").write_text(PROGRAM)
    model = ("-m", "headrace", "compile", tmp_path / "model.relay", "-o", tmp_path / "model.so")
    compiled = run_python(environment, "", *model, "--backends", "elementwise")
    assert compiled.returncode == 0, compiled.stderr
    np.save(tmp_path / "x.npy", np.float32([[0, 1, 2], [3, 4, 5]]))
    x = ("--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path, "--fallback", "none")
    ran = run_python(environment, "", "-m", "headrace", "run", tmp_path / "model.so", *x)
    assert ran.returncode == 0, ran.stderr
    # Without the package, both verbs say what is missing.
    elsewhere = run_python(dict(os.environ), "", *model, "--backends", "elementwise")
    assert elsewhere.returncode == 3
    left_out = build_backends.left_out(sys.executable, "-m", "headrace")
    there = [name for name in ("ccompiler", "examplejson", "null", "numpy", "onednn") if name not in left_out]
    assert f"there is no backend 'elementwise'; there are {', '.join(there)}" in elsewhere.stderr
    elsewhere = run_python(dict(os.environ), "", "-m", "headrace", "run", tmp_path / "model.so", *x)
    assert elsewhere.returncode == 4
    assert "needs the backend 'elementwise', and" in elsewhere.stderr
    assert "it is in Python: install its package or give its file (--plugin FILE.py), and use" in elsewhere.stderr


def test_it_passes_the_conformance_kit(environment):
    listed = run_python(environment, "", "-m", "headrace.backend", "list")
    assert "elementwise" in listed.stdout.split()
    checked = run_python(environment, "", "-m", "headrace.backend", "check", "elementwise")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.rstrip().endswith("all passed")
