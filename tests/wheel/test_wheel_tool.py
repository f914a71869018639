"""tools/wheel.py writes archives that pip takes, and refuses what would not run on a machine without LLVM."""

import base64
import configparser
import contextlib
import csv
import email.parser
import hashlib
import importlib.util
import io
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("wheel", ROOT / "tools" / "wheel.py")
wheel = importlib.util.module_from_spec(SPEC)
sys.modules["wheel"] = wheel
SPEC.loader.exec_module(wheel)

PROJECT = {
    "version": "1.2.3",
    "license": "Apache-2.0",
    "requires-python": ">=3.10",
    "readme": "README.md",
    "description": "Compiles",
    "dependencies": ["numpy>=2.1"],
    "scripts": {"headrace": "headrace._programs:headrace"},
    "optional-dependencies": {"ray": ["ray>=2.50"]},
    "entry-points": {"some_group": {"headrace": "headrace:compile"}},
}


class WheelTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="headrace_wheel_test_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix, self.build = self.folder / "prefix", self.folder / "build"
        for name in (
            *("_core.abi3.so", "_runtime.abi3.so", "lib/libheadrace.so", "lib/libheadrace_llvm.so"),
            "lib/libheadrace_verbs.so",
            *("lib/libheadrace_rt.so", "lib/cmake/headrace/headrace-config.cmake", "include/headrace/c_api.h"),
            *("bin/headrace", "bin/headrace-opt", "bin/headrace-stage-host", "bin/c-host"),
            *("include/headrace/compiler/relay/expr.h", "lib/libheadrace_onednn.so"),
        ):
            self.write(self.prefix / name, name, is_program=name.startswith("bin/"))
        documents = self.folder / "doc"
        for part in (*wheel.IN_COMPILER, *wheel.IN_ONEDNN):
            self.write(documents / part / "copyright", f"licence of {part}")
        patched = unittest.mock.patch.object(wheel, "DOC", documents)
        patched.start()
        self.addCleanup(patched.stop)
        for name in ("__init__.py", "_core.pyi", "py.typed", "relay/nn.py", "ops-written", "_core.cpython-311.so"):
            self.write(self.build / "python/headrace" / name, name)

    def write(self, path, text, is_program=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if is_program else 0o644)

    def packages(self):
        return wheel.packages(self.build, self.prefix, PROJECT)

    def test_the_runtime_has_all_python_files_and_nothing_of_the_compiler(self):
        runtime, compiler, onednn = self.packages()
        self.assertEqual(
            sorted(runtime.files),
            [
                *("headrace/__init__.py", "headrace/_core.pyi", "headrace/_runtime.abi3.so"),
                *("headrace/bin/headrace-stage-host", "headrace/include/headrace/c_api.h"),
                *("headrace/lib/cmake/headrace/headrace-config.cmake", "headrace/lib/libheadrace_rt.so"),
                *("headrace/py.typed", "headrace/relay/nn.py"),
            ],
        )
        self.assertEqual(
            sorted(compiler.files),
            [
                *("headrace/_core.abi3.so", "headrace/bin/headrace", "headrace/bin/headrace-opt"),
                "headrace/include/headrace/compiler/relay/expr.h",
                *("headrace/lib/libheadrace.so", "headrace/lib/libheadrace_llvm.so"),
                "headrace/lib/libheadrace_verbs.so",
            ],
        )
        self.assertEqual(list(onednn.files), ["headrace/lib/libheadrace_onednn.so"])
        self.assertIn("headrace-runtime==1.2.3", compiler.needs)
        self.assertEqual(onednn.needs, ["headrace-runtime==1.2.3"])
        self.assertIn("numpy>=2.1", runtime.needs)

    def test_a_build_without_onednn_has_no_wheel_of_it(self):
        (self.prefix / "lib/libheadrace_onednn.so").unlink()
        self.assertEqual([package.name for package in self.packages()], ["headrace-runtime", "headrace"])

    def test_the_archive_is_a_wheel(self):
        path = wheel.write_wheel(self.packages()[1], PROJECT, self.folder)
        self.assertEqual(path.name, "headrace-1.2.3-cp310-abi3-linux_x86_64.whl")
        with zipfile.ZipFile(path) as archive:
            info = "headrace-1.2.3.dist-info"
            fields = email.parser.Parser().parsestr(archive.read(f"{info}/METADATA").decode())
            self.assertEqual((fields["Name"], fields["Version"]), ("headrace", "1.2.3"))
            self.assertEqual(fields.get_all("Requires-Dist"), ["headrace-runtime==1.2.3", "ray>=2.50; extra == 'ray'",
                                                              "headrace-onednn==1.2.3; extra == 'onednn'"])  # fmt: skip
            self.assertIn("# Headrace", fields.get_payload())
            self.assertIn("llvm-19-dev.txt", fields.get_all("License-File"))
            self.assertEqual(archive.read(f"{info}/licenses/libzip4.txt"), b"licence of libzip4")
            entries = configparser.ConfigParser()
            entries.read_string(archive.read(f"{info}/entry_points.txt").decode())
            self.assertEqual(entries["console_scripts"]["headrace"], "headrace._programs:headrace")
            self.assertEqual(entries["some_group"]["headrace"], "headrace:compile")
            self.assertIn("Tag: cp310-abi3-linux_x86_64\n", archive.read(f"{info}/WHEEL").decode())
            rows = list(csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(archive.namelist()))
            for place, digest, size in rows:
                if not place.endswith("RECORD"):
                    data = archive.read(place)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                    self.assertEqual((digest, size), (f"sha256={expected}", str(len(data))))
            modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
            self.assertEqual(modes["headrace/bin/headrace"], 0o100755)
            self.assertEqual(modes["headrace/lib/libheadrace.so"], 0o100644)

    def test_a_licence_that_is_missing_is_named(self):
        (self.folder / "doc/libfmt-dev/copyright").unlink()
        said = io.StringIO()
        with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(said):
            wheel.write_wheel(self.packages()[0], PROJECT, self.folder)
        self.assertEqual(stopped.exception.code, 4)
        self.assertIn(
            "the licence of code in headrace-runtime; apt-get install --reinstall libfmt-dev", said.getvalue()
        )

    def test_equal_contents_give_equal_bytes(self):
        first = wheel.write_wheel(self.packages()[0], PROJECT, self.folder).read_bytes()
        (self.prefix / "_runtime.abi3.so").touch()
        self.assertEqual(wheel.write_wheel(self.packages()[0], PROJECT, self.folder).read_bytes(), first)

    def test_a_library_that_needs_libxml2_is_refused(self):
        if shutil.which("gcc-12") is None:
            self.skipTest("gcc-12 is not installed; apt-get install g++-12")
        fake = self.folder / "libxml2.so.2"
        compile_shared = ("gcc-12", "-shared", "-nostdlib", "-x", "c", "/dev/null")
        subprocess.run([*compile_shared, "-o", str(fake), f"-Wl,-soname,{fake.name}"], check=True)
        plugin = self.prefix / "lib/libheadrace_llvm.so"
        subprocess.run([*compile_shared, "-o", str(plugin), "-x", "none", "-Wl,--no-as-needed", str(fake)], check=True)
        said = io.StringIO()
        with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(said):
            wheel.check_contents(self.packages()[1])
        self.assertEqual(stopped.exception.code, 1)
        self.assertIn("headrace/lib/libheadrace_llvm.so is linked to libxml2.so.2", said.getvalue())
        wheel.check_contents(self.packages()[0])

    def test_a_folder_without_the_files_is_named(self):
        command = [sys.executable, str(ROOT / "tools" / "wheel.py"), "--build", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn("has no wheel/_core.abi3.so and no lib/libheadrace_rt.so; ./dev wheel builds them", done.stderr)

    def test_earlier_wheels_are_removed_and_other_files_stay(self):
        for name in (
            "headrace-0.0.1-x.whl",
            "headrace_runtime-0.0.1-x.whl",
            "headrace_onednn-0.0.1-x.whl",
            "other-1.whl",
        ):
            (self.folder / name).touch()
        wheel.clear(self.folder)
        self.assertEqual([path.name for path in self.folder.glob("*.whl")], ["other-1.whl"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
