#!/usr/bin/env python3
"""count_tests.py counts what ctest, GoogleTest and pytest leave behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent / "count_tests.py"

PASSED = '<testcase name="{}" status="run"/>'
FAILED = '<testcase name="{}" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="{}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>{}</testcase>'
GTEST_CASES = """<testsuites><testsuite><testcase name="a" status="run" classname="S"/>
<testcase name="b" status="run" classname="S">{}</testcase></testsuite></testsuites>"""


class CountTestsTest(unittest.TestCase):
    def count(self, ctest: str, details: dict[str, str]) -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results"
            results.mkdir()
            (results / "ctest.xml").write_text(f"<testsuite>{ctest}</testsuite>")
            for name, text in details.items():
                (results / f"{name}.xml").write_text(text)
            run = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=True)
            return run.stdout.strip(), run.stderr

    def test_a_ctest_without_cases_is_one(self) -> None:
        self.assertEqual(self.count(PASSED.format("x") + FAILED.format("y"), {}), ("1 1 0", "  failed: y\n"))

    def test_cases_are_counted(self) -> None:
        self.assertEqual(self.count(PASSED.format("x"), {"x": GTEST_CASES.format("")}), ("2 0 0", ""))

    def test_failed_case(self) -> None:
        detail = GTEST_CASES.format('<failure message="m"/>')
        self.assertEqual(self.count(FAILED.format("x"), {"x": detail}), ("1 1 0", "  failed: x: S.b: m\n"))

    def test_failures_say_why(self) -> None:
        for failure, why in (
            ('<failure message="f.cc:7&#10;Expected: 1&#10;Actual: 2"/>', "f.cc:7 Expected: 1 Actual: 2"),
            (
                "<failure>Traceback (most recent call last):\n  File x\nAssertionError: 1 is not 2\n</failure>",
                "AssertionError: 1 is not 2",
            ),
            ('<error message="gone"/>', "gone"),
            (f'<failure message="{"m" * 400}"/>', "m" * 298),
        ):
            _, said = self.count(FAILED.format("x"), {"x": GTEST_CASES.format(failure)})
            self.assertEqual(said, f"  failed: x: S.b: {why}\n")
        ctest = '<testcase name="x" status="fail"><failure message=""/><system-out>one\ntwo\n</system-out></testcase>'
        self.assertEqual(self.count(ctest, {})[1], "  failed: x: two\n")

    def test_skipped_case_says_why(self) -> None:
        detail = GTEST_CASES.format('<skipped message="f.cc:1&#10;no device"/>')
        self.assertEqual(self.count(PASSED.format("x"), {"x": detail}), ("1 0 1", "  skipped: x: S.b: no device\n"))

    def test_skipped_ctest_says_why(self) -> None:
        skipped = SKIPPED.format("x", "<system-out>no pytest\n</system-out>")
        self.assertEqual(self.count(skipped, {}), ("0 0 1", "  skipped: x: no pytest\n"))

    def test_death_after_passing_cases_is_a_failure(self) -> None:
        counts, _ = self.count(FAILED.format("x"), {"x": GTEST_CASES.format("")})
        self.assertEqual(counts, "2 1 0")


if __name__ == "__main__":
    unittest.main()
