#!/usr/bin/env python3
"""Checks the tables of ops in the READMEs of our backends against `headrace backend list --ops`; --bless writes them.

test_backend_tables.py --program build/release/bin/headrace [--bless]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BACKENDS = ("ccompiler", "examplejson", "onednn")
BEGIN = "<!-- This table is generated; `test_backend_tables.py --bless` writes it. -->\n"
END = "<!-- The end of the table. -->\n"
OPTIONS = argparse.Namespace()


def report() -> dict[str, list]:
    """The program's table of all backends."""
    command = [OPTIONS.program, "backend", "list", "--ops", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout)


def table_of(backend: str, ops: list[dict]) -> str:
    """The table of one backend: the ops that it takes in some case."""
    rows = ["| op | taken, of the cases of the conformance kit |", "| --- | --- |"]
    for row in ops:
        claims = row["backends"][backend]
        if claims["taken"] > 0:
            share = "all" if claims["taken"] == claims["cases"] else f"{claims['taken']} of {claims['cases']}"
            rows.append(f"| `{row['op']}` | {share} |")
    return "\n".join(rows) + "\n"


def with_table(text: str, table: str) -> str:
    """A README's text with another table between the marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table + END + rest.split(END)[1]


class BackendTables(unittest.TestCase):
    maxDiff = None

    def test_the_tables_are_those_of_the_program(self) -> None:
        said = report()
        left_out = {row["name"] for row in said["backends"] if row["missing"]}
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                if backend in left_out:
                    self.skipTest(f"{backend} cannot be used in this build")
                page = ROOT / f"src/backends/{backend}/README.md"
                text = page.read_text()
                wanted = with_table(text, table_of(backend, said["ops"]))
                if OPTIONS.bless:
                    page.write_text(wanted)
                else:
                    self.assertEqual(
                        text, wanted, f"{page} is stale; update it: {sys.argv[0]} --program {OPTIONS.program} --bless"
                    )

    def test_patterns_are_named_in_both_forms(self) -> None:
        (onednn,) = [row for row in report()["backends"] if row["name"] == "onednn"]
        if onednn["missing"]:
            self.skipTest("onednn cannot be used in this build")
        names = onednn["patterns"]
        self.assertEqual(names, ["onednn.gelu", "onednn.twice_gelu", "onednn.swish"])
        command = [OPTIONS.program, "backend", "list", "--ops"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
        self.assertEqual(said.splitlines()[-1], f"patterns of onednn: {', '.join(names)}")
        self.assertNotIn("patterns of ccompiler", said)

    def test_a_stale_table_differs(self) -> None:
        ops = [
            {"op": "add", "backends": {"a": {"taken": 2, "cases": 2}}},
            {"op": "exp", "backends": {"a": {"taken": 1, "cases": 3}}},
            {"op": "log", "backends": {"a": {"taken": 0, "cases": 3}}},
        ]
        table = table_of("a", ops)
        self.assertEqual(table.splitlines()[2:], ["| `add` | all |", "| `exp` | 1 of 3 |"])
        self.assertEqual(with_table(f"x\n{BEGIN}old\n{END}y\n", table), f"x\n{BEGIN}{table}{END}y\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--bless", action="store_true", default=os.environ.get("HEADRACE_BLESS") == "1")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
