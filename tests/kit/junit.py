"""Results of Python test programs as JUnit XML, which tools/count_tests.py counts. Standard library only."""

from __future__ import annotations

import sys
import unittest
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One case; `message` says why it failed or was skipped."""

    name: str
    outcome: str  # passed, failed, skipped
    message: str = ""


def write_junit(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Writes the cases of a suite."""
    root = ElementTree.Element("testsuite", name=suite, tests=str(len(cases)))
    for case in cases:
        element = ElementTree.SubElement(root, "testcase", classname=suite, name=case.name)
        if case.outcome == "failed":
            ElementTree.SubElement(element, "failure").text = case.message
        elif case.outcome == "skipped":
            ElementTree.SubElement(element, "skipped", message=case.message)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="unicode")


class _Recorder(unittest.TextTestResult):
    """Keeps every test's outcome."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.cases: dict[str, Case] = {}

    def _keep(self, test: unittest.TestCase, outcome: str, message: str = "") -> None:
        # A test with sub-tests fails when one of them does.
        name = test.id().split(".", 1)[-1].removesuffix(")")  # a class is "setUpClass (module.Class)"
        if self.cases.get(name, Case(name, "passed")).outcome != "failed":
            self.cases[name] = Case(name, outcome, message)

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self._keep(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: tuple) -> None:
        super().addFailure(test, err)
        self._keep(test, "failed", self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: tuple) -> None:
        super().addError(test, err)
        self._keep(test, "failed", self.errors[-1][1])

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: tuple | None) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._keep(test, "failed", f"{subtest}: {err[1]}")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._keep(test, "skipped", reason)


def run_unittests(suite_name: str, suite: unittest.TestSuite, path: Path | None) -> int:
    """Runs a suite, prints why tests were skipped, writes the results to `path` when given; the exit code."""
    result = unittest.TextTestRunner(resultclass=_Recorder).run(suite)
    for case in result.cases.values():
        if case.outcome == "skipped":
            print(f"skipped {case.name}: {case.message}", file=sys.stderr)
    if path is not None:
        write_junit(path, suite_name, list(result.cases.values()))
    return 0 if result.wasSuccessful() else 1
