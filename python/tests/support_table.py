"""The tables of ops in the READMEs of the backends in Python: what their checkers say of the kit's cases."""

from pathlib import Path

import headrace as hr
from headrace import _core

FOLDER = Path(__file__).parents[1] / "headrace/backends"
BEGIN, END = "<!-- the table: pytest --bless writes it -->\n", "<!-- the end of the table -->\n"


def claims_of(backend: str) -> list[tuple[str, int, int]]:
    """For each op that the backend takes in some case: its name, the cases that it takes, and all."""
    hr.backend.find(backend)
    return _core.backend_claims(backend)


def check_table(backend: str, bless: bool) -> None:
    """Compares the README's table with the claims of the backend, or writes it."""
    rows = ["| op | cases of the conformance kit that it takes |", "| --- | --- |"]
    rows += [f"| `{op}` | {'all' if taken == all else f'{taken} of {all}'} |" for op, taken, all in claims_of(backend)]
    page = FOLDER / backend / "README.md"
    text = page.read_text()
    before, rest = text.split(BEGIN)
    current = before + BEGIN + "\n".join(rows) + "\n" + END + rest.split(END)[1]
    if bless:
        page.write_text(current)
        return
    assert text == current, f"{page} is out of date: run pytest --bless python/tests/test_{backend}_backend.py"
