"""The programs that pip installs beside the package, and `python -m headrace`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
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


MODEL = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { negative(nn.relu(%x)) }
"""
CRASHER = """
import os
import re
from headrace.backend import Backend

class Crasher(Backend):
    name = "crasher"
    version = "7"
    def supports(self, call):
        return True if call.op.name in ("exp", "tanh") else "is neither exp nor tanh"
    def compile(self, regions, options):
        return [b"1"] * len(regions)
    def load(self, data):
        def run(name, inputs, outputs):
            os.abort()
        return run
"""


def in_python(*words, cwd, code=0):
    """Runs `python -m headrace` with the packages in the folder `cwd`, too; gives what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cwd), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "headrace", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def install(folder, name, module, text):
    """Writes a module and what pip would write of its entry point."""
    (folder / f"{module}.py").write_text(text)
    info = folder / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[headrace.backends]\n{name} = {module}:{name.capitalize()}\n")


def test_the_program_in_python_has_the_backends_of_python(tmp_path):
    (tmp_path / "model.relay").write_text(MODEL)
    np.save(tmp_path / "x.npy", np.float32([-1, 2, -3, 4]))
    chosen = ("model.relay", "--backends", "numpy")
    assert "2 ops by numpy" in in_python("explain", *chosen, "--save-plan", "plan.json", cwd=tmp_path)
    in_python("compile", *chosen, "-o", "model.so", cwd=tmp_path)
    in_python("compile", "model.relay", "--plan", "plan.json", "-o", "planned.so", cwd=tmp_path)
    for file in ("model.so", "planned.so"):
        assert "region tvmgen_default_numpy_main_0 by numpy" in in_python("inspect", file, cwd=tmp_path)
    assert "ok:" in in_python("verify", *chosen, cwd=tmp_path)
    run = ("run", "model.so", "--input", "x=x.npy", "--output-dir", "out", "--fallback", "none", "--json")
    assert '"fallbacks": []' in in_python(*run, cwd=tmp_path)
    (output,) = (tmp_path / "out").glob("*.npy")
    np.testing.assert_array_equal(np.load(output), np.float32([-0.0, -2, -0.0, -4]))
    assert "there is no backend 'nmpy'" in in_python(
        "explain", "model.relay", "--backends", "nmpy", cwd=tmp_path, code=3
    )


def test_the_program_in_python_lists_and_checks_the_backends_of_python(tmp_path):
    install(tmp_path, "crasher", "crashing", CRASHER)
    install(tmp_path, "broken", "breaking", "import no_such_package")
    listed = in_python("backend", "list", cwd=tmp_path).splitlines()
    rows = {line.split()[0]: line.split() for line in listed}
    assert rows["crasher"][1:] == ["7", "0"]
    assert "onednn" in rows and "numpy" in rows
    assert "No module named 'no_such_package'" in " ".join(rows["broken"])
    (tmp_path / "model.relay").write_text(MODEL)
    told = in_python("explain", "model.relay", "--backends", "broken", cwd=tmp_path, code=4)
    assert "headrace: the backend 'broken' cannot be imported from 'breaking:Broken'" in told
    # Each crash ends a child, and the next one is started in Python again.
    told = in_python("backend", "check", "crasher", "--case", "exp/*", "--case", "tanh/*", cwd=tmp_path, code=5)
    assert told.count("crash") > 2, told
    assert "all passed" in in_python("backend", "check", "numpy", "--case", "nn.softmax/*", cwd=tmp_path)


def test_a_profile_names_the_backend_that_fails(tmp_path):
    (tmp_path / "model.relay").write_text(MODEL.replace("nn.relu", "exp"))
    (tmp_path / "mine.py").write_text(CRASHER.replace("os.abort()", "raise RuntimeError('the chip is gone')"))
    chosen = ("model.relay", "--backends", "crasher", "--plugin", "mine.py", "-o", "costs.json")
    said = in_python("profile", *chosen, cwd=tmp_path, code=3)
    assert re.search(
        r"the backend 'crasher' failed in run of the region '\w+': RuntimeError: the chip is gone", said
    ), said
    assert "fallback" not in said


def test_a_wrong_command_line_in_python(tmp_path):
    assert "there is no verb 'complie'" in in_python("complie", cwd=tmp_path, code=2)
    assert in_python("--version", cwd=tmp_path).startswith("headrace ")


def in_the_program(code):
    """Runs code with the program's function `run` in a new interpreter; gives what it prints, and fails if it fails."""
    before = """
import ctypes, signal
from headrace import __main__, _core
run = ctypes.CDLL(_core.own_folder() + "/libheadrace_verbs.so").headrace_run_program
words = __main__._words(["headrace"])
"""
    done = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_function_of_the_program_throws_nothing():
    assert in_the_program("print(run(1, words, -1, words))").startswith("1\nheadrace: a defect: ")


def test_an_ignored_interrupt_stays_ignored():
    code = """
class Verbs:
    headrace_run_program = staticmethod(lambda *words: 0)
ctypes.CDLL = lambda path: Verbs
for handler in (signal.SIG_IGN, signal.default_int_handler):
    signal.signal(signal.SIGINT, handler)
    __main__._main([])
    print(signal.getsignal(signal.SIGINT).name)
"""
    assert in_the_program(code) == "SIG_IGN\nSIG_DFL\n"


def test_a_file_of_backends(tmp_path):
    (tmp_path / "model.relay").write_text(MODEL.replace("nn.relu", "exp"))
    (tmp_path / "mine.py").write_text(CRASHER.replace("os.abort()", "outputs[0][...] = 1"))
    chosen = ("model.relay", "--backends", "crasher")
    assert "by crasher" in in_python("explain", *chosen, "--plugin", "mine.py", cwd=tmp_path)
    assert "by crasher" in in_python("--plugin=mine.py", "explain", *chosen, cwd=tmp_path)
    assert re.search(r"^crasher +7 ", in_python("backend", "list", "--plugin", "mine.py", cwd=tmp_path), re.M)
    # The children of the kit know it, too: its results are wrong.
    said = in_python("backend", "check", "crasher", "--case", "exp/*", "--plugin", "mine.py", cwd=tmp_path, code=5)
    assert "[result]" in said
    for wrong in ("none.py", "folder.py"):
        (tmp_path / "folder.py").mkdir(exist_ok=True)
        said = in_python("backend", "list", "--plugin", wrong, cwd=tmp_path, code=3)
        assert f"headrace: --plugin: there is no file '{wrong}'" in said


def test_a_file_of_backends_may_have_the_name_of_a_package(tmp_path):
    (tmp_path / "model.relay").write_text(MODEL.replace("nn.relu", "exp"))
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "numpy.py").write_text("import numpy\nnumpy.float32\n" + CRASHER)
    chosen = ("explain", "model.relay", "--backends", "crasher", "--plugin", "plugins/numpy.py")
    assert "by crasher" in in_python(*chosen, cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import json\n\nimport none_such\n", "mine.py:3: ModuleNotFoundError: No module named 'none_such'"),
        ("def f(:\n", "mine.py:1: SyntaxError: "),
        (
            CRASHER.replace('name = "crasher"', ""),
            "mine.py registers no backend and no function: the class Crasher has no",
        ),
        ("x = 1\n", "mine.py registers no backend and no function: it has no class of headrace.backend.Backend"),
        (
            CRASHER.replace("crasher", "numpy"),
            "mine.py: there is a backend 'numpy' already, that of an installed package; give Crasher another name",
        ),
        (
            CRASHER + "\n\nclass Second(Crasher):\n    pass\n",
            "there is a backend 'crasher' already, that of the class headrace_plugin_mine.Crasher; give Second another",
        ),
        (CRASHER + "\n    def __init__(self):\n        raise OSError('no device')\n", ": OSError: no device"),
        (CRASHER + "\n    def __init__(self, device):\n        pass\n", "missing 1 required positional argument"),
        (CRASHER + "\n    def __init__(self):\n        raise SystemExit(0)\n", ": SystemExit: 0"),
        ("import sys\nsys.exit(3)\n", "mine.py:2: SystemExit: 3"),
        ("from its_parts import Crasher\n", "its class Crasher is imported; add headrace.backend.register(Crasher())"),
    ],
)
def test_a_file_without_a_backend_of_its_own_is_an_error(tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "its_parts.py").write_text(CRASHER)
    told = in_python("backend", "list", "--plugin", "mine.py", cwd=tmp_path, code=3)
    assert "headrace: --plugin: mine.py" in told
    assert said in told
    assert "Traceback" not in told


def test_a_file_may_register_a_function_alone(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import headrace\n\n\n@headrace.register_func('relay.ext.minetest')\ndef codegen(function): ...\n"
    )
    in_python("backend", "list", "--plugin", "mine.py", "--plugin", "mine.py", cwd=tmp_path)


def test_a_plugin_without_a_file_is_wrong_usage(tmp_path):
    assert "--plugin" in in_python("backend", "list", "--plugin", cwd=tmp_path, code=2)
