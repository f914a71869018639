"""The small programs tell how they are used: small_programs_test.py PROGRAM ..."""

import pathlib
import subprocess
import sys
import unittest

PROGRAMS = [sys.argv.pop(1) for _ in sys.argv[1:]]


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class SmallPrograms(unittest.TestCase):
    def test_there_are_some(self) -> None:
        self.assertTrue(PROGRAMS)

    def test_help(self) -> None:
        for program in PROGRAMS:
            for option in ("-h", "--help"):
                done = run(program, option)
                self.assertEqual((done.returncode, done.stderr), (0, ""), program)
                self.assertRegex(done.stdout, rf"\Ausage: {pathlib.Path(program).name} ")

    def test_too_few_arguments(self) -> None:
        for program in PROGRAMS:
            done = run(program)
            self.assertEqual((done.returncode, done.stdout), (2, ""), program)
            self.assertRegex(done.stderr, rf"\Ausage: {pathlib.Path(program).name} ")

    def test_too_many_arguments(self) -> None:
        for program in PROGRAMS:
            if pathlib.Path(program).name in ("write_toy_artifact", "write_split_artifact", "footprint", "c-client"):
                done = run(program, "/nowhere/a", "b", "c")
                self.assertEqual((done.returncode, done.stdout), (2, ""), program)
                self.assertIn("usage: ", done.stderr)

    def test_what_cannot_be_written(self) -> None:
        model = pathlib.Path(__file__).parents[2] / "models/digits.onnx"
        before = {"write_toy_artifact": [], "write_zoo": [], "write_split_artifact": [str(model)]}
        for program in PROGRAMS:
            if pathlib.Path(program).name in before:
                done = run(program, *before[pathlib.Path(program).name], "/nowhere/a")
                self.assertEqual(done.returncode, 3)
                self.assertIn("cannot write '/nowhere/a", done.stderr)


if __name__ == "__main__":
    unittest.main()
