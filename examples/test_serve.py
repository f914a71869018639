"""examples/serve serves an artifact: answers, batches, health, errors and the end."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

np = pytest.importorskip("numpy")
hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
if not all(importlib.util.find_spec(name) for name in ("ray", "starlette", "uvicorn")):
    pytest.skip("Ray Serve is not installed (pip install '.[ray]')", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "serve" / "serve_artifact.py"
BATCH = 8
START_SECONDS = 120


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answer(url: str, data: object = None) -> tuple[int, object]:
    """The status and the JSON (or text) of a GET, or of a POST with data."""
    body = None if data is None else (data if isinstance(data, bytes) else json.dumps(data).encode())
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as response:
            status, text = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "digits.so"
    hr.compile(ROOT / "models" / "digits.onnx", shapes={"x": (BATCH, 1, 8, 8)}, threads=1, output=path)
    return path


@pytest.fixture(scope="module")
def server(artifact, tmp_path_factory):
    """The address of the server, its process and the file that it prints to."""
    port, log = free_port(), tmp_path_factory.mktemp("log") / "log.txt"
    command = [sys.executable, PROGRAM, artifact, "--port", str(port), "--wait", "0.05"]
    environment = dict(os.environ, RAY_USAGE_STATS_ENABLED="0")
    with log.open("w") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as run:
        try:
            end = time.monotonic() + START_SECONDS
            while f"serving digits.so at http://127.0.0.1:{port}/" not in log.read_text():
                assert run.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", run, log
        finally:
            run.kill()


def test_requests_that_arrive_together_run_together(server, artifact):
    url, *_ = server
    images = np.load(ROOT / "models" / "digits_images.npy")[:40]
    model = hr.load(artifact)
    expected = np.concatenate([np.from_dlpack(model(images[begin : begin + BATCH])) for begin in range(0, 40, BATCH)])
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda image: answer(url, {"x": image.tolist()}), images))
    assert {status for status, _ in answers} == {200}
    np.testing.assert_array_equal(np.array([made["probabilities"] for _, made in answers], np.float32), expected)
    status, stats = answer(f"{url}/stats")
    assert status == 200
    assert (stats["batch"], stats["requests"]) == (BATCH, 40)
    assert 40 / BATCH <= stats["runs"] < 40


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no JSON", "Expecting value"),
        ([1], "expected an object with the inputs x"),
        ({"y": 1}, "expected an object with the inputs x"),
        ({"x": [1.0]}, "input 'x' has shape (1,); it is (1, 8, 8)"),
        ({"x": "text"}, "input 'x' has text, where it takes float32"),
        ({"x": None}, "input 'x' has null, where it takes float32"),
        ({"x": [[[1e39] * 8] * 8]}, "input 'x' has a number that is not finite as float32"),
        ({"x": [[[10**400] * 8] * 8]}, "input 'x' has a number that is not finite as float32"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_bad_requests_are_refused(server, data, message):
    status, made = answer(server[0], data)
    assert status == 400
    assert message in made["error"]


def test_health(server):
    url, *_ = server
    assert answer(f"{url}/-/healthz") == (200, "success")
    assert answer(f"{url}/other") == (404, {"error": "GET /stats, or POST inputs"})


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("serve_artifact", PROGRAM)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.filterwarnings("ignore")  # those of Ray Serve about its own code
@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ([1, 1.7], "int32", "it has fractions, where it takes int32"),
        ([300], "int8", "it has a number that int8 does not hold; it takes -128 to 127"),
        ([10**30], "int64", "it has a number that int64 does not hold"),
        ([[1], [1, 2]], "float32", "it has lists of different lengths, where it takes float32"),
        ([{}, True], "float32", "it has an object and true or false, where it takes float32"),
        ([1], "bool", "it has integers, where it takes bool"),
    ],
)
def test_json_that_the_dtype_does_not_hold(module, value, dtype, message):
    with pytest.raises(ValueError, match=message):
        module.array_of_json(value, np.dtype(dtype), "it")


@pytest.mark.filterwarnings("ignore")
def test_json_and_back(module):
    made = module.array_of_json([[1, 2.5]], np.dtype("float32"), "it")
    np.testing.assert_array_equal(made, np.array([[1, 2.5]], np.float32))
    assert module.json_of_row({"y": made}) == {"y": [[1.0, 2.5]]}
    assert "output 'y' has numbers that are not finite" in module.json_of_row({"y": np.array([1.0, np.nan])})


@pytest.mark.filterwarnings("ignore")
def test_only_its_own_application_of_a_cluster_ends(module, artifact, monkeypatch):
    calls = []
    server = {name: lambda *_, label=name, **__: calls.append(label) for name in ("start", "run", "shutdown")}
    monkeypatch.setattr(module, "serve", SimpleNamespace(**server, delete=lambda name: calls.append(("delete", name))))
    monkeypatch.setattr(module, "ray", SimpleNamespace(init=lambda **_: None, shutdown=lambda: None))
    monkeypatch.setattr(module.headrace.ray, "artifact_ref", lambda _: SimpleNamespace(name="digits.so"))
    monkeypatch.setattr(module.threading.Event, "wait", lambda *_: True)
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["serve_artifact.py", str(artifact), "--address", "auto"])
    module.main()
    assert calls == ["start", "run", ("delete", "headrace")]


@pytest.mark.parametrize("kind", ["missing", "no batch"])
def test_an_artifact_that_cannot_be_served_is_one_line(tmp_path, kind):
    path, message = tmp_path / "none.so", "there is no file"
    if kind == "no batch":
        text = "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) { add(%x, %y) }"
        (tmp_path / "sum.relay").write_text(f'#[version = "0.0.5"]\n{text}\n')
        hr.compile(tmp_path / "sum.relay", output=path)
        message = "do not have one batch as their first dimension, which requests share: 'x' (2, 3), 'y' (3,)"
    done = subprocess.run([sys.executable, PROGRAM, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.filterwarnings("ignore")  # those of Ray Serve about its own code
def test_the_check_notices_an_artifact_that_computes_something_else(module):
    """The replica's class by itself: Serve calls check_health, and an error makes it replace the replica."""
    replica = object.__new__(module.Served.func_or_class)
    replica._inputs = {"x": ((1,), "float32")}
    replica._lock = module.threading.Lock()
    replica._predict = lambda columns: {"y": columns["x"] + 1}
    replica._expected = replica._on_zeros()
    replica.check_health()
    replica._predict = lambda columns: {"y": columns["x"] + 2}
    with pytest.raises(RuntimeError, match="output 'y' for zeros differs"):
        replica.check_health()


def test_the_server_stops(server):  # the last test: it ends the server
    _, run, log = server
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=90) == 0, log.read_text()
    assert log.read_text().splitlines()[-1] == "stopped"
