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

    def test_peers_are_installed_with_what_they_need(self) -> None:
        """pnnx without the packages that it declares, which are those of PyTorch; the others with theirs."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(ROOT / "dev", folder / "dev")
            (folder / "deps").mkdir()
            for file in (ROOT / "deps").iterdir():
                text = file.read_text() if file.name == "peers-alone.txt" else ""
                (folder / "deps" / file.name).write_text(text)
            python = folder / ".venv/bin/python"
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n')
            python.chmod(0o755)
            subprocess.run([folder / "dev", "setup", "--peers"], capture_output=True, timeout=60, check=True)
            calls = (folder / "calls").read_text().splitlines()
            lists = [Path(call.split()[-1]).name for call in calls]
            self.assertEqual(lists, ["py.txt", "peers.txt", "peers-alone.txt", "wheel.txt"])
            self.assertEqual(["--no-deps" in call.split() for call in calls], [False, False, True, False])
            self.assertIn("pnnx==", (folder / "deps/peers-alone.txt").read_text())

    def test_usage_says_which_help_builds(self) -> None:
        done = subprocess.run([ROOT / "dev", "--help"], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("brought up to date first, also for --help", done.stdout)


if __name__ == "__main__":
    unittest.main()
