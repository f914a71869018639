"""The record of Relay's own tests: its sums, and its reasons, which docs/porting-from-relay.md states."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = (ROOT / "python/tests/relay_acceptance.md").read_text()
PORTING = " ".join((ROOT / "docs/porting-from-relay.md").read_text().split())


def table(heading: str) -> list[list[str]]:
    """The cells of the rows below a heading."""
    lines = RECORD[RECORD.index(heading) :].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


FILES = table("| file | cases | pass |")
REASONS = table("| file | cases | number | reason |")


def test_the_rows_add_up():
    numbers = {row[0]: [int(cell) for cell in row[1:]] for row in FILES}
    total = numbers.pop("**all**")
    assert [sum(column) for column in zip(*numbers.values(), strict=True)] == total
    for file, (cases, *outcomes) in numbers.items():
        assert sum(outcomes) == cases, file
    assert f"Of {total[0]} cases, {total[2]} need later work" in RECORD
    assert f"{total[1]} pass" in RECORD
    assert f"{total[3]} differ on purpose and {total[4]} are gaps" in " ".join(RECORD.split())


def test_no_file_has_more_reasons_than_cases_on_purpose():
    on_purpose = {row[0]: int(row[4]) for row in FILES}
    known = Counter()
    for file, cases, number, reason, _ in REASONS:
        assert reason
        if not cases.startswith(("all ", "both ", "those ")):
            assert int(number) == len(cases.split(", ")), cases
        known[file] += int(number)
    for file, number in known.items():
        assert number <= on_purpose[file], file
    assert f"of {known.total()} of the {on_purpose['**all**']}:" in RECORD


def test_each_reason_is_in_the_page_about_porting():
    for file, cases, _, _, words in REASONS:
        assert words.replace("&#124;", "|") in PORTING, (file, cases, words)
