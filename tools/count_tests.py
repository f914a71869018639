#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" of the last ctest run in a build folder, and on stderr each failure and skip.

    tools/count_tests.py BUILD_DIR

Reads results/ctest.xml (ctest --output-junit). A ctest that left results/<its name>.xml (GoogleTest, pytest) counts as
the cases of that file, any other as one. A program that died with no file, or with passing cases only, is one failure.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def read_case(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    is_skipped = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")
    return "skipped" if is_skipped else "passed"


def lines_of(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def explain(case: ElementTree.Element) -> str:
    """Returns the message of a failed or skipped case in one line: for a skip or an output of ctest the last line,
    otherwise as much as fits; empty if there is none."""
    skipped = case.find("skipped")
    output = lines_of(case.findtext("system-out"))
    if skipped is not None:
        lines = output or lines_of(skipped.text) or lines_of(skipped.get("message"))
        return f": {lines[-1]}" if lines else ""
    found = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
    text = "" if found is None else found.get("message") or found.text or ""
    if text.startswith("Traceback"):  # its frames are indented, the exception is not
        text = "\n".join(line for line in text.splitlines()[1:] if not line.startswith(" "))
    lines = lines_of(text) or output[-1:]
    return f": {' '.join(lines)}"[:300] if lines else ""


def count_tests(build: Path) -> Counter:
    counts: Counter = Counter()
    for test in ElementTree.parse(build / "results" / "ctest.xml").iter("testcase"):
        name, outcome = test.get("name", "?"), read_case(test)
        detail = build / "results" / f"{name}.xml"
        cases = list(ElementTree.parse(detail).iter("testcase")) if detail.is_file() and outcome != "skipped" else []
        outcomes = [read_case(case) for case in cases]
        for case, case_outcome in zip(cases, outcomes, strict=True):
            if case_outcome != "passed":
                where = f"{case.get('classname', '')}.{case.get('name')}"
                print(f"  {case_outcome}: {name}: {where}{explain(case)}", file=sys.stderr)
        if not cases or (outcome == "failed" and "failed" not in outcomes):
            outcomes.append(outcome)
            if outcome != "passed":
                print(f"  {outcome}: {name}{explain(test)}", file=sys.stderr)
        counts.update(outcomes)
    return counts


if __name__ == "__main__":
    total = count_tests(Path(sys.argv[1]))
    print(total["passed"], total["failed"], total["skipped"])
