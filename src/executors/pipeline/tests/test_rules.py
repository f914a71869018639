#!/usr/bin/env python3
"""The table of the rules of pipelines names tests that exist: three for each rule, and one more that is adversarial."""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
TABLE = Path(__file__).with_name("rules.md")
ROW = re.compile(r"\| (\d+)\. (.*?) \| (.*?) \| (.*?) \|")


def rows(text: str) -> list[tuple[int, list[str], list[str]]]:
    """For each rule its number, its tests and its adversarial ones."""
    found = (ROW.fullmatch(line) for line in text.splitlines())
    return [(int(row[1]), row[3].split(", "), row[4].split(", ")) for row in found if row]


def tests() -> set[str]:
    """The tests of the room and of its sub-rooms, and those of Python for pipelines."""
    names = set()
    for file in (ROOT / "src/executors/pipeline").rglob("*_test.cc"):
        names |= {f"{suite}.{name}" for suite, name in re.findall(r"^TEST\((\w+), (\w+)\)", file.read_text(), re.M)}
    for file in (ROOT / "python/tests").glob("test_pipeline*.py"):
        names |= {f"{file.stem}::{name}" for name in re.findall(r"^def (test_\w+)\(", file.read_text(), re.M)}
    return names


def problems(text: str, known: set[str]) -> list[str]:
    """Returns the faults of a table; `known` are the tests that exist."""
    found, table = [], rows(text)
    if [number for number, _, _ in table] != list(range(1, 15)):
        found.append("the table has the rules " + ", ".join(str(number) for number, _, _ in table))
    for number, usual, adversarial in table:
        named = usual + adversarial
        found += [f"rule {number}: there is no test {name}" for name in named if name not in known]
        if len(set(usual)) < 3:
            found.append(f"rule {number} has fewer than three tests")
        if not set(adversarial) - set(usual):
            found.append(f"rule {number} has no adversarial test")
    return found


class Rules(unittest.TestCase):
    def test_every_rule_has_its_tests(self) -> None:
        self.assertEqual(problems(TABLE.read_text(), tests()), [])

    def test_a_missing_test_is_reported(self) -> None:
        text, known = TABLE.read_text(), tests()
        renamed = text.replace("PipelineFlow.SubmitRunsNoStage", "PipelineFlow.Gone")
        self.assertEqual(problems(renamed, known), ["rule 1: there is no test PipelineFlow.Gone"])
        few = text.replace("PipelineFailures.Cancel, ", "")
        self.assertEqual(problems(few, known), ["rule 10 has fewer than three tests"])
        short = "\n".join(line for line in text.splitlines() if not line.startswith("| 14."))
        self.assertEqual(len(problems(short, known)), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
