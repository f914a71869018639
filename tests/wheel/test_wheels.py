"""The wheels on a machine without compiler or LLVM: installed, README's example, the runtime alone, find_package.

    HEADRACE_WHEELS=dist python3 tests/wheel/test_wheels.py        after ./dev wheel

Makes a chroot of Debian's Python and its libraries, and takes numpy and nanobind-backend from PyPI. Needs root.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from chroot import Chroot, missing_for_chroot

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
FULL, ALONE = "/root/full", "/root/alone"  # the virtual environments
PACKAGE = f"lib/python3.{sys.version_info.minor}/site-packages/headrace"
HOST_PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(host LANGUAGES C)
find_package(headrace 0.1 REQUIRED)
add_executable(host main.c)
target_compile_definitions(host PRIVATE _DEFAULT_SOURCE)
target_link_libraries(host PRIVATE headrace::runtime)
"""
RUN_ARTIFACT = """
import numpy as np
import headrace as hr

f = hr.load("digits.so")
images = np.load("models/digits_images.npy")
labels = np.load("models/digits_labels.npy")
y = f(images)
assert isinstance(y, hr.NDArray) and y.shape == (360, 10), y
print("right:", int((y.numpy().argmax(1) == labels).sum()))
kept = y.numpy().copy()
y = f(x=images)
assert (y.numpy() == kept).all()
"""
REFUSALS = """
import headrace as hr

def refused(call):
    try:
        call()
    except hr.MissingError as error:
        return str(error)
    raise AssertionError("not refused")

def relay():
    import headrace.relay
    headrace.relay.var("x", shape=(1, 3))

for call in (
    lambda: hr.compile("models/digits.onnx", dims={"n": 360}),
    lambda: hr.InferenceSession("models/digits.onnx"),
    lambda: hr.Target("llvm"),
    lambda: hr.IRModule(),
    lambda: hr.get_global_func("relay.build"),
    lambda: hr.device("cuda"),
    relay,
):
    told = refused(call)
    assert "pip install headrace==0.1.0" in told, told
assert hr.device("cpu", 0) == hr.cpu()
assert hr.get_global_func("no.such", allow_missing=True) is None
try:
    hr.load("models/digits.onnx")
except hr.UserError as error:
    print(error)
"""
PIPELINE = """
import numpy as np
import headrace as hr
from headrace import pipeline

images = np.load("models/digits_images.npy")
labels = np.load("models/digits_labels.npy")

def read(scores):
    return scores.argmax(1)

def refused(call):
    try:
        call()
    except hr.MissingError as error:
        assert "pip install headrace==0.1.0" in str(error), error
    else:
        raise AssertionError("not refused")

for isolation in ("thread", "process"):
    with pipeline.chain([pipeline.Stage("digits.so", isolation=isolation), read]) as pipe, pipe.trace() as trace:
        print("right:", int((np.asarray(pipe.submit(images).wait()) == labels).sum()))
        refused(lambda: trace.save("trace.json"))
with pipeline.chain(["digits.so"]) as pipe:
    refused(lambda: pipe.save("pipeline.so"))
refused(lambda: pipeline.split("models/digits.onnx", "split.so", stages=2))
"""


def wheel_folder() -> Path:
    return Path(os.environ["HEADRACE_WHEELS"]).resolve()


def missing() -> str:
    """Why the test cannot run here; "" where it can."""
    if not os.environ.get("HEADRACE_WHEELS"):
        return "HEADRACE_WHEELS does not name a folder of wheels; ./dev wheel makes dist"
    if not all(list(wheel_folder().glob(f"{name}-*.whl")) for name in ("headrace", "headrace_runtime")):
        return f"there are no wheels in {wheel_folder()}; ./dev wheel makes them"
    return missing_for_chroot()


def download(folder: Path) -> str:
    """Downloads what the wheels need; gives pip's error where it cannot."""
    python = ROOT / ".venv/bin/python" if (ROOT / ".venv/bin/python").exists() else Path("/usr/bin/python3")
    command = [python, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", folder]
    needs = ["--find-links", str(wheel_folder()), "headrace"]
    done = subprocess.run([*map(str, command), *needs], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


class WheelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="headrace_wheels_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.chroot = Chroot(cls.folder / "machine")
        cls.home = cls.chroot.root / "root"
        told = download(cls.home / "wheels")
        if told:
            print(told, file=sys.stderr)
            print("PyPI cannot be reached, which numpy and nanobind-backend come from")
            sys.exit(SKIPPED)
        shutil.copytree(ROOT / "models", cls.home / "models")
        cls.install(FULL, "headrace")
        cls.install(ALONE, "headrace-runtime")
        cls.chroot.run(f"{FULL}/bin/headrace", "compile", "models/digits.onnx", "-o", "digits.so", "--dim", "n=360")

    @classmethod
    def install(cls, venv, name):
        cls.chroot.run("python3", "-m", "venv", venv)
        pip = (f"{venv}/bin/python", "-m", "pip", "install", "-q", "--no-index", "--find-links", "wheels")
        cls.chroot.run(*pip, name)

    def python(self, venv, text):
        return self.chroot.run(f"{venv}/bin/python", "-c", text)

    def test_the_machine_has_no_compiler(self):
        self.assertEqual(self.chroot.tools(), [])
        compiler = self.chroot.root / "tmp/x86_64-linux-gnu-gcc-12"
        compiler.touch()
        self.assertEqual(self.chroot.tools(), [str(compiler)])
        compiler.unlink()

    def test_the_runtimes_wheel_is_small(self):
        (path,) = wheel_folder().glob("headrace_runtime-*.whl")
        self.assertLess(path.stat().st_size, 2_000_000)
        self.assertRegex(path.name, r"-cp310-abi3-manylinux_\d+_\d+_x86_64\.whl$")

    def test_the_example_of_the_readme_runs(self):
        readme = (ROOT / "README.md").read_text()
        (example,) = re.findall(r"```python needs=headrace\n(.*?)```", readme, re.S)
        self.assertIn("InferenceSession", example)
        self.python(FULL, example + "print(y.shape)")

    def test_the_programs_run(self):
        program = f"{FULL}/bin/headrace"
        said = self.chroot.run(program, "run", "digits.so", "--input", "x=models/digits_images.npy", "--top", "2")
        self.assertIn("probabilities", said)
        self.assertIn("ok:", self.chroot.run(program, "verify", "models/digits.onnx", "--shape", "x=16,1,8,8"))
        self.assertIn("FoldConstant", self.chroot.run(f"{FULL}/bin/headrace-opt", "--list-passes"))

    def test_the_runtime_alone_runs_an_artifact(self):
        right = int(self.python(ALONE, RUN_ARTIFACT).split("right:")[1])
        self.assertGreaterEqual(right, 353)  # 98 % of 360, as tools/check_runtime.py asks for
        self.assertFalse((self.home / ALONE.removeprefix("/root/") / PACKAGE / "_core.abi3.so").exists())

    def test_the_runtime_alone_runs_pipelines(self):
        counts = [int(count) for count in re.findall("right: (.+)", self.python(ALONE, PIPELINE))]
        self.assertEqual(len(counts), 2)
        self.assertGreaterEqual(min(counts), 353)

    def test_the_runtime_alone_says_what_to_install(self):
        self.assertIn("is a model, which headrace.compile compiles", self.python(ALONE, REFUSALS))
        self.chroot.run(f"{ALONE}/bin/python", "-m", "pip", "check")

    def test_a_c_project_finds_the_runtime(self):
        project = self.folder / "host"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(HOST_PROJECT)
        shutil.copy(ROOT / "examples/c-host/main.c", project)
        cmakedir = self.chroot.run(f"{ALONE}/bin/headrace-config", "--cmakedir").strip()
        found = f"-Dheadrace_DIR={self.chroot.root}{cmakedir}"
        for command in (["cmake", "-B", "build", found], ["cmake", "--build", "build"]):
            done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shutil.copy(project / "build/host", self.home / "host")
        one = ("--shape", "x=1,1,8,8")
        self.chroot.run(f"{FULL}/bin/headrace", "compile", "models/digits.onnx", "-o", "one.so", *one)
        libraries = self.chroot.run(f"{ALONE}/bin/headrace-config", "--libdir").strip()
        said = self.chroot.run("./host", "one.so", LD_LIBRARY_PATH=libraries)
        self.assertIn("output probabilities: float32, shape 1 10", said)

    def test_the_commands_of_the_dockerfile_run(self):
        lines = (ROOT / "examples/docker/Dockerfile").read_text().splitlines()
        words = [line.partition(" ")[::2] for line in lines]
        self.assertEqual([word for word, _ in words], ["FROM", "COPY", "RUN", "WORKDIR", "COPY", "CMD"])
        self.assertEqual(
            [words[1][1], words[4][1]], ["dist/*.whl /wheels/", "models/digits.onnx models/digits_images.npy ./"]
        )
        (self.home / "image/models").mkdir(parents=True)
        for name in ("digits.onnx", "digits_images.npy"):
            shutil.copy(ROOT / "models" / name, self.home / "image/models")
        shutil.copytree(self.home / "wheels", self.chroot.root / "wheels")
        self.chroot.run("python3", "-m", "venv", "/root/image/python")
        run = {"PATH": "/root/image/python/bin:/usr/bin", "PIP_NO_INDEX": "1"}
        self.chroot.run("sh", "-c", words[2][1], **run)
        said = self.chroot.run("sh", "-c", words[5][1], cwd="/root/image/models", **run)
        self.assertIn("probabilities", said)

    def test_the_plugin_needs_no_llvm(self):
        (plugin,) = (self.home / "full").rglob("libheadrace_llvm.so")
        dynamic = subprocess.run(["readelf", "-d", str(plugin)], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        self.assertIn("libheadrace_rt.so", needed)
        self.assertFalse([name for name in needed if re.match("lib(LLVM|z3|xml2|tinfo|lld)", name)], needed)


if __name__ == "__main__":
    told = missing()
    if told:
        print(f"skipped: {told}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
