"""The end of the process while daemon threads are in native code: exit code 0 and no output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHAIN = "".join(f"let %v{i} = {'tanh' if i % 3 else 'nn.relu'}(%v{i - 1 if i else ''} + {i}f);\n  " for i in range(60))
MODEL = f'#[version = "0.0.5"]\ndef @main(%v: Tensor[(64, 64), float32]) {{\n  {CHAIN}%v59\n}}\n'

PRELUDE = """
import sys, threading, time
import numpy as np
import headrace as hr
from headrace import relay

MODEL = sys.argv[1]
X = np.zeros((64, 64), "float32")
started = threading.Event()

def forever(work):
    while True:
        work()
        started.set()

def start(work, threads=2):
    for _ in range(threads):
        threading.Thread(target=forever, args=(work,), daemon=True).start()
"""

CASES = {
    "compiles": """
start(lambda: (started.set(), hr.compile(MODEL)))
started.wait()
time.sleep(float(sys.argv[2]))
""",
    "runs": """
m = hr.compile(MODEL)
start(lambda: m(X))
started.wait()
time.sleep(float(sys.argv[2]))
""",
    "runs its own": """
start(lambda m=hr.compile(MODEL): m(X), threads=1)
start(lambda m=hr.compile(MODEL): m(X), threads=1)
started.wait()
time.sleep(float(sys.argv[2]))
""",
    "is called back": """
hr.register_func("test_exit.add", lambda x: x + 1)
add = hr.get_global_func("test_exit.add")
start(lambda: add(1))
started.wait()
time.sleep(float(sys.argv[2]))
""",
    "outlasts the wait in a callback": """
hr.register_func("test_exit.sleep", lambda x: time.sleep(2.3))
sleep = hr.get_global_func("test_exit.sleep")
start(lambda: (started.set(), sleep(1)))
started.wait()
""",
    "interprets": """
module = relay.parse(open(MODEL).read())
evaluate = relay.create_executor("debug", mod=module).evaluate()
start(lambda: evaluate(X))
started.wait()
time.sleep(float(sys.argv[2]))
""",
    "works in an exit handler": """
import atexit
m = hr.compile(MODEL)
start(lambda: hr.compile(MODEL))
atexit.register(lambda: m(X))
started.wait()
""",
}


@pytest.mark.parametrize("name", CASES)
def test_daemon_threads_do_not_disturb_the_end(name: str, tmp_path: Path) -> None:
    model = tmp_path / "m.relay"
    model.write_text(MODEL)
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + CASES[name])
    usual = {"compiles": 10, "runs": 10, "outlasts the wait in a callback": 1}.get(name, 4)
    for run in range(int(os.environ.get("HEADRACE_TEST_EXITS", usual))):
        delay = str(run * 0.013)
        ended = subprocess.run(
            [sys.executable, script, model, delay], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), f"run {run}"
