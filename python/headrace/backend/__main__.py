"""`python -m headrace.backend check NAME`: the conformance kit for backends in Python."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from headrace import backend
from headrace._core import MissingError, UserError
from headrace.backend import _kit

# Exit codes of headrace/status.h.
_BAD_INPUT, _MISSING, _MISMATCH = 3, 4, 5


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m headrace.backend", description="Checks backends in Python.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print the names of the backends in Python")
    check = verbs.add_parser("check", help="check what a backend claims, for each op and pattern")
    check.add_argument("name", help="the backend's name: of an installed package, or built in")
    check.add_argument("--case", action="append", metavar="PATTERN", help="only such cases, as 'nn.conv2d/*'")
    check.add_argument(
        "--timeout", type=float, default=60, metavar="SECONDS", help="of one case, 0.1 to 86400 (default: 60)"
    )
    check.add_argument("--json", action="store_true", help="print the reports as JSON")
    return parser


def _main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.verb == "list":
        print("\n".join(backend.names()))
        return 0
    try:
        reports = backend.check(given.name, given.case, given.timeout)
        claimed = any(one.claimed for one in reports)
        if given.json:
            print(json.dumps(_kit.to_json(given.name, reports), indent=2))
        else:
            print(_kit.to_text(given.name, reports, not given.case))
        if any(one.findings for one in reports):
            return _MISMATCH
        if not claimed:
            raise UserError(f"the backend '{given.name}' claims none of the cases, so nothing was checked")
    except UserError as error:
        print(f"headrace.backend: {error}", file=sys.stderr)
        return _MISSING if isinstance(error, MissingError) else _BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(_main())
