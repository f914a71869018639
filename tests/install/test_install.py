"""With nothing but what `cmake --install` gives, a stranger builds a backend and a program and uses both.

Where this user may mount, the commands that build and use a backend see empty folders in place of this repository and
of the build (hidden.py).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hidden
import user_session

ROOT = Path(__file__).resolve().parents[2]

HOST_PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(host LANGUAGES C)
find_package(headrace 0.1 REQUIRED)
add_executable(host main.c)
target_compile_definitions(host PRIVATE _DEFAULT_SOURCE)
target_link_libraries(host PRIVATE headrace::runtime)
"""

OPTIONS_PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(options LANGUAGES NONE)
include(${ROOT}/cmake/UserConfig.cmake)
option(USE_CODEGENC "" ON)
option(USE_ONEDNN "" ON)
message(STATUS "codegenc ${USE_CODEGENC}, onednn ${USE_ONEDNN}")
"""


def run(*command, code=0, cwd=None, without=()):
    """Returns what the command prints; fails if its exit code is another. It sees the folders of `without` empty."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    words = [str(part) for part in command]
    if without:
        environment["PATH"] = hidden.path_without(without)
        words = hidden.command(words, without)
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class InstallTest(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="headrace_install_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first = cls.folder / "first"
        run("cmake", "--install", cls.build, "--prefix", first)
        cls.prefix = cls.folder / "moved"
        first.rename(cls.prefix)
        cls.program = cls.prefix / "bin" / "headrace"
        cls.digits = Path(shutil.copy(ROOT / "models" / "digits.onnx", cls.folder))
        cls.sources = [ROOT, cls.build.resolve()]
        cls.why_seen = hidden.why_not(cls.sources, cls.folder)

    def stranger(self, *command, **more):
        """Runs a command as `run` does, without the sources and the build where they can be hidden."""
        return run(*command, **more, without=[] if self.why_seen else self.sources)

    def test_strangers_see_no_sources(self):
        if self.why_seen:
            self.skipTest(f"strangers see the sources: {self.why_seen}")
        here = Path(__file__).resolve()
        self.assertEqual(self.stranger("ls", "-A", *self.sources[:1]), "")
        self.stranger("test", "-e", here, code=1)
        self.stranger("test", "-e", self.build / "bin" / "headrace", code=1)
        self.assertTrue(here.exists())

    def project(self, name, **files):
        """Returns a folder in which a project is built against the prefix."""
        folder = self.folder / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file.replace("_", ".")).write_text(text)
        self.stranger("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", cwd=folder)
        self.stranger("cmake", "--build", "build", cwd=folder)
        for file in ("CMakeCache.txt", "CMakeFiles/TargetDirectories.txt"):
            self.assertNotIn(f"{ROOT}/", (folder / "build" / file).read_text())
        return folder / "build"

    def test_nothing_points_to_where_it_was_built(self):
        binaries = [path for path in self.prefix.rglob("*") if path.suffix == ".so" or path.parent.name == "bin"]
        self.assertGreaterEqual(len(binaries), 5)
        for path in binaries:
            self.assertNotIn(str(ROOT), run("readelf", "-d", path), path)
        texts = [path for path in self.prefix.rglob("*") if path.suffix in (".h", ".hpp", ".cmake")]
        self.assertGreaterEqual(len(texts), 11)
        for path in texts:
            self.assertNotIn(str(ROOT), path.read_text(), path)

    def check_a_backend(self, name, **files):
        """Builds a backend, checks it, compiles a model with right results, and returns its library."""
        plugin = self.project(name, **files) / f"lib{name}.so"
        self.assertIn("all passed", self.stranger(self.program, "backend", "check", plugin, "--quiet"))
        artifact = self.folder / f"{name}_digits.so"
        chosen = ("--shape", "x=1,1,8,8", "--plugin", plugin, "--backends", name)
        self.stranger(self.program, "compile", self.digits, "-o", artifact, *chosen)
        self.assertIn(f"9 ops by {name}", self.stranger(self.program, "inspect", artifact))
        self.assertIn("ok:", self.stranger(self.program, "verify", self.digits, *chosen))
        return plugin

    def test_each_verb_has_a_man_page(self):
        _, _, verbs = run(self.program, "--help").partition("Subcommands:\n")
        pages = {page.name for page in (self.prefix / "share/man/man1").iterdir()}
        for verb in re.findall(r"(?m)^  ([a-z]+) ", verbs):
            self.assertIn(f"headrace-{verb}.1", pages)
        self.assertIn("headrace.1", pages)

    def test_a_backend_in_c_is_built_and_used(self):
        example = ROOT / "examples" / "byoc-plugin"
        self.check_a_backend("convs", CMakeLists_txt=(example / "CMakeLists.txt").read_text(),
                             plugin_c=(example / "plugin.c").read_text())  # fmt: skip

    def test_a_backend_in_cpp_is_built_and_used(self):
        example = ROOT / "examples" / "byoc-plugin-cpp"
        source = (example / "plugin.cc").read_text()
        code = [line for line in source.splitlines() if line.strip() and not line.strip().startswith("//")]
        self.assertLess(len(code), 60)
        plugin = self.check_a_backend("convs_cpp", CMakeLists_txt=(example / "CMakeLists.txt").read_text(),
                                      plugin_cc=source)  # fmt: skip
        run(self.build / "bin" / "write_zoo", self.folder, "resnet50", "--small")
        model, artifact = self.folder / "resnet50.onnx", self.folder / "resnet50.so"
        chosen = ("--plugin", plugin, "--backends", "convs_cpp")
        self.stranger(self.program, "compile", model, "-o", artifact, "--quiet", *chosen)
        report = json.loads(self.stranger(self.program, "inspect", artifact, "--json"))
        placement = report["programs"][0]["placement"]
        regions = {row["region"] for row in placement if row["backend"] == "convs_cpp"}
        self.assertGreaterEqual(len(regions), 40)
        self.assertIn("ok:", self.stranger(self.program, "verify", model, *chosen))

    def code_generator(self, example, name, more=""):
        """Builds an example in C++ with the headers of the prefix alone; returns its library."""
        folder = ROOT / "examples" / example
        build = self.project(name, CMakeLists_txt=(folder / "CMakeLists.txt").read_text() + more,
                             codegen_cc=(folder / "codegen.cc").read_text())  # fmt: skip
        (depends,) = build.rglob("codegen.cc.o.d")
        self.assertIn(f"{self.prefix}/include/headrace/compiler/lower/user_ops/porting.h", depends.read_text())
        self.assertNotIn(f"{ROOT}/", depends.read_text())
        (library,) = build.glob("*.so")
        return library

    def sums(self):
        """Returns a model of four ops, and the arguments that run it."""
        model, picture = self.folder / "sums.relay", self.folder / "sums.npy"
        model.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) '
                         "{ nn.relu(multiply(subtract(add(%x, %x), %x), %x)) }\n")  # fmt: skip
        user_session.write_picture(picture, [2, 3])
        return model, ("--input", f"x={picture}", "--output-dir", self.folder / "sums", "--fallback", "none")

    def test_a_code_generator_of_c_is_built_and_used(self):
        library = self.code_generator("byoc-ccompiler", "mine")
        model, arguments = self.sums()
        chosen = ("--plugin", library, "--backends", "mine")
        self.assertIn("3 ops by mine\n", run(self.program, "explain", model, *chosen))
        artifact = self.folder / "mine.so"
        run(self.program, "compile", model, "-o", artifact, *chosen)
        run(self.program, "run", artifact, *arguments)  # the C is in the file
        self.assertIn("ok:", run(self.program, "verify", model, *chosen))
        self.assertIn("all passed", run(self.program, "backend", "check", "mine", "--plugin", library, "--quiet"))
        said = run(self.program, "backend", "check", library, code=3)
        self.assertIn(f"name one: headrace backend check NAME --plugin {library}", said)

    def test_a_code_generator_with_a_runtime_is_built_and_used(self):
        library = self.code_generator("byoc-json", "mygraph")
        model, arguments = self.sums()
        chosen = ("--plugin", library, "--backends", "mygraph")
        artifact = self.folder / "mygraph.so"
        run(self.program, "compile", model, "-o", artifact, *chosen)
        run(self.program, "run", artifact, "--plugin", library, *arguments)
        self.assertIn("modules of the kind 'mygraph'", run(self.program, "run", artifact, *arguments, code=4))
        self.assertIn("ok:", run(self.program, "verify", model, *chosen))
        self.assertIn("all passed", run(self.program, "backend", "check", "mygraph", "--plugin", library, "--quiet"))

    def test_a_code_generator_of_another_version_is_refused(self):
        other = "built_with_headers_of_headrace_0_0_9"
        library = self.code_generator("byoc-ccompiler", "old", more=(
            f"target_compile_definitions(mine PRIVATE built_with_headers_of_headrace_0_1_0={other})\n"))  # fmt: skip
        said = run(self.program, "backend", "list", "--plugin", library, code=3)
        told = "was built with the C++ headers of another version of Headrace than this one, 0.1.0; build it again with"
        self.assertIn(f"'{library}' {told} the headers of 0.1.0", said)
        said = run("/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library, code=1)
        self.assertIn(f"undefined symbol: {other}", said)

    def test_each_header_of_objects_is_for_one_version(self):
        source = self.folder / "alone.cc"
        for header in ("lower/user_ops/user_op.h", "codegen/codegen_c.h", "object/function.h", "relay/expr.h"):
            source.write_text(f'#include "{header}"\n')
            include = self.prefix / "include"
            folders = ("-I", include, "-I", include / "headrace" / "compiler")
            compiler = ("g++-12", "-std=c++20", "-fPIC", "-DFMT_HEADER_ONLY", *folders)
            run(*compiler, "-c", source, "-o", source.with_suffix(".o"))
            self.assertIn(" U built_with_headers_of_headrace_0_1_0", run("nm", source.with_suffix(".o")), header)

    def test_the_runtime_alone_has_no_compiler(self):
        alone = self.folder / "alone"
        shutil.copytree(self.prefix, alone)
        (alone / "lib" / "libheadrace.so").unlink()
        folder = self.folder / "without"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text((ROOT / "examples/byoc-ccompiler/CMakeLists.txt").read_text())
        said = run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={alone}", cwd=folder, code=1)
        self.assertIn("this is the runtime alone, without libheadrace.so", " ".join(said.split()))

    def test_a_program_is_built_and_runs_an_artifact(self):
        source = (ROOT / "examples" / "c-host" / "main.c").read_text()
        host = self.project("host", CMakeLists_txt=HOST_PROJECT, main_c=source) / "host"
        artifact = self.folder / "plain.so"
        run(self.program, "compile", ROOT / "models" / "digits.onnx", "-o", artifact, "--shape", "x=1,1,8,8")
        self.assertIn("output probabilities: float32, shape 1 10", run(host, artifact))

    def test_a_users_session(self):
        folder = self.folder / "session"
        folder.mkdir()
        unplugged = user_session.without_library(self.prefix)
        user_session.session(self.program, unplugged, self.build / "bin" / "write_zoo", folder)

    def test_a_file_of_the_build_sets_options(self):
        self.assertIn("include(UserConfig)\noption(", (ROOT / "CMakeLists.txt").read_text())
        folder = self.folder / "options"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(OPTIONS_PROJECT)
        configure = ("cmake", "-B", "build", f"-DROOT={ROOT}")
        self.assertIn("-- codegenc ON, onednn ON", run(*configure, cwd=folder))
        (folder / "build" / "config.cmake").write_text("set(USE_CODEGENC OFF)\n")
        said = run(*configure, "-DUSE_ONEDNN=OFF", cwd=folder)
        self.assertIn("-- codegenc OFF, onednn OFF", said)
        self.assertIn("/build/config.cmake", said)

    def test_a_later_version_is_not_there(self):
        folder = self.folder / "later"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(HOST_PROJECT.replace("headrace 0.1", "headrace 7.0"))
        said = run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", cwd=folder, code=1)
        self.assertIn("headrace-config.cmake, version: 0.1.0", said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the build folder, with everything built")
    options, rest = parser.parse_known_args()
    InstallTest.build = options.build
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
