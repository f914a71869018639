#!/usr/bin/env python3
"""Checks libraries of `headrace --plugin` whose backends have one name.

test_names.py --program build/release/bin/headrace --plugins build/release/plugins
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
import build_backends

OPTIONS = argparse.Namespace()
USER = 3


def listed(*plugins: str) -> subprocess.CompletedProcess[str]:
    words = [word for plugin in plugins for word in ("--plugin", f"{OPTIONS.plugins}/{plugin}.so")]
    command = [OPTIONS.program, "backend", "list", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


class Names(unittest.TestCase):
    def test_a_library_that_is_given_twice_counts_once(self) -> None:
        done = listed("chip", "chip")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, listed("chip").stdout)

    def test_two_libraries_of_one_name(self) -> None:
        for first, second in (("chip", "other_chip"), ("other_chip", "chip")):
            done = listed(first, second)
            paths = f"'{OPTIONS.plugins}/{first}.so' and '{OPTIONS.plugins}/{second}.so'"
            self.assertEqual(done.returncode, USER)
            self.assertIn(f"the backends {paths} are both named 'chip'; load one of them", done.stderr)

    def test_a_library_with_the_name_of_a_backend_of_this_program(self) -> None:
        if "null" in build_backends.left_out(OPTIONS.program):
            self.skipTest("this build has no backend null")
        done = listed("named_null")
        self.assertEqual(done.returncode, USER)
        self.assertIn(
            "there is a backend 'null' already, which this program has; leave out that of the library "
            f"'{OPTIONS.plugins}/named_null.so', or give it another name",
            done.stderr,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--plugins", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
