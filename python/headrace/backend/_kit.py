"""The conformance kit's reports."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace import _core, _public

__all__ = ["CaseReport", "Finding"]


@dataclass(frozen=True)
class Finding:
    """A check that failed: its name ("result", "threads" ...), and what was seen and should have been."""

    check: str
    message: str


@dataclass(frozen=True)
class CaseReport:
    """The result of the kit for one case.

    `case` is the name, an op or a pattern and what is special ("nn.conv2d/strides"); `claimed` whether the backend
    takes all of the program; `checks` how many were made; `findings` those that failed; `warnings` what is no mistake,
    as costs far from the time of a run; `refusal` why the backend does not take a case that it does not claim;
    `program` the Relay text of the case.
    """

    case: str
    claimed: bool
    checks: int
    findings: list[Finding] = field(default_factory=list)
    refusal: str = field(default="", repr=False)
    program: str = field(default="", repr=False)
    warnings: list[Finding] = field(default_factory=list)
    _native: Any = field(default=None, repr=False, compare=False)


def check(backend: str, cases: Sequence[str], timeout: float) -> list[CaseReport]:
    """Checks a backend that is registered."""
    sys.stdout.flush()  # a child would write what is left a second time
    return [
        CaseReport(
            report.name,
            report.is_claimed,
            report.num_checks,
            [Finding(finding.check, finding.message) for finding in report.findings],
            report.refusal,
            report.program,
            [Finding(warning.check, warning.message) for warning in report.warnings],
            report,
        )
        for report in _core.check_backend(backend, list(cases), float(timeout))
    ]


def begin_child() -> None:
    """Makes a child write at once what it prints: it ends without the interpreter's exit."""
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)  # type: ignore[arg-type]


def to_json(backend: str, reports: Sequence[CaseReport]) -> dict[str, Any]:
    """The report as `headrace backend check --json` prints it."""
    rows = [
        {
            "case": one.case,
            "claimed": one.claimed,
            "checks": one.checks,
            "findings": [{"check": finding.check, "message": finding.message} for finding in one.findings],
            "warnings": [{"check": warning.check, "message": warning.message} for warning in one.warnings],
            "refusal": one.refusal,
            "program": one.program if one.findings else "",
        }
        for one in reports
    ]
    return {"backend": backend, "cases": rows, "failed": sum(bool(one.findings) for one in reports)}


def to_text(backend: str, reports: Sequence[CaseReport], is_whole: bool) -> str:
    """The pass matrix, the findings, a summary, and of a whole check the patterns that no case matched."""
    native = [one._native for one in reports]
    rows = _core.check_matrix(native)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [repr(line)[1:-1] for line in _core.check_failures(native)]
    lines.append(_core.check_summary(backend, native))
    unchecked = _core.unchecked_patterns(backend, native) if is_whole else []
    if unchecked:
        lines.append(f"no case matches {', '.join(unchecked)}; check that by models that have it (headrace verify)")
    return "\n".join(lines)


_public.publish(__name__, "headrace.backend")
