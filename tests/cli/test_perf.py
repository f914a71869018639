#!/usr/bin/env python3
"""Profilers find the kernels of a running artifact by name. Standard library only; without a `perf` that may sample,
the test of its report is skipped.

tests/cli/test_perf.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from test_cli import DIGITS, CliTest, main


def why_no_perf() -> str:
    """Why perf cannot sample here; empty where it can."""
    perf = shutil.which("perf")
    if perf is None:
        return "there is no perf"
    tried = subprocess.run(
        [perf, "record", "-o", "/dev/null", "-e", "cpu-clock", "true"], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else "perf may not sample here"


class PerfTest(CliTest):
    artifact: Path

    def setUp(self) -> None:
        self.artifact = self.folder / "digits.so"
        self.call("compile", DIGITS, "--shape", "x=360,1,8,8", "-o", self.artifact, check=True)

    def bench(self, seconds: float) -> list[str]:
        return [str(self.program), "bench", str(self.artifact), "--seconds", str(seconds)]

    def mapped_files(self, environment: dict[str, str]) -> set[str]:
        """The files of a running benchmark that are mapped for execution."""
        with subprocess.Popen(self.bench(20), env=environment, stdout=subprocess.DEVNULL) as running:
            try:
                for _ in range(100):
                    maps = Path(f"/proc/{running.pid}/maps").read_text()
                    found = {
                        line.split(maxsplit=5)[5] for line in maps.splitlines() if " r-xp " in line and "/" in line
                    }
                    if any("digits.so" in file or "memfd:" in file for file in found):
                        return found
                    time.sleep(0.1)
            finally:
                running.kill()
        return set()

    def test_the_file_is_mapped_on_request(self) -> None:
        plain = {name: value for name, value in os.environ.items() if name != "HEADRACE_PERF"}
        self.assertNotIn(str(self.artifact), self.mapped_files(plain))
        self.assertIn(str(self.artifact), self.mapped_files(plain | {"HEADRACE_PERF": "1"}))

    def test_perf_names_the_kernels(self) -> None:
        if reason := why_no_perf():
            self.skipTest(reason)
        samples = self.folder / "perf.data"
        environment = dict(os.environ, HEADRACE_PERF="1")
        subprocess.run(
            ["perf", "record", "-o", samples, "-e", "cpu-clock", *self.bench(1)],
            env=environment,
            capture_output=True,
            check=True,
        )
        report = subprocess.run(
            ["perf", "report", "-i", samples, "--stdio"], capture_output=True, text=True, check=True
        ).stdout
        self.assertRegex(report, r"digits\.so .*nn_conv2d")


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli_perf"))
