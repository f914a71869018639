"""./dev prints the help of its Python programs without setting anything up. Standard library only."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {"demo": "examples/demo.py", "bench": "bench/run.py", "prove": "tools/prove.py"}


class Help(unittest.TestCase):
    def test_help_builds_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(ROOT / "dev", folder / "dev")
            for program in PROGRAMS.values():
                (folder / program).parent.mkdir(exist_ok=True)
                (folder / program).write_text("import sys\nprint(sys.argv[0], *sys.argv[1:])\n")
            before = sorted(folder.iterdir())
            for verb, program in PROGRAMS.items():
                for option in ("--help", "-h"):
                    with self.subTest(verb=verb, option=option):
                        done = subprocess.run(
                            [folder / "dev", verb, option], capture_output=True, text=True, timeout=60, check=True
                        )
                        self.assertEqual(done.stdout, f"{folder.resolve() / program} {option}\n")
            self.assertEqual(sorted(folder.iterdir()), before)

    def test_usage_says_which_help_builds(self) -> None:
        done = subprocess.run([ROOT / "dev", "--help"], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("brought up to date first, also for --help", done.stdout)


if __name__ == "__main__":
    unittest.main()
