"""Checks the table of docs/add-an-op.md: the files that it names exist and mention the op. Standard library only."""

from __future__ import annotations

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/add-an-op.md"
# nn.leaky_relu, op::kLeakyRelu, ONNX's LeakyRelu; not qnn.leaky_relu, alone or in a list of such names.
OP = re.compile(r"(?<!qnn\.)(?<!hardswish )leaky_?relu", re.IGNORECASE)
PARTS = "registration formula precision gradient laws importer backends Python cases tests conformance docs"


def rows_of(page: str) -> list[list[str]]:
    """The rows of the table of files: part, file, what it has, when it is needed."""
    table = page.partition("| part | file |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def faults(page: str, root: Path) -> list[str]:
    """Returns the faults of the table. A row that says "no row" is for a file that must not mention the op."""
    found = []
    for _, file, has, _ in rows_of(page):
        path = root / file.strip("`")
        if not path.is_file():
            found.append(f"{file} does not exist: name the file that has it now")
            continue
        is_mentioned, is_expected = bool(OP.search(path.read_text(encoding="utf-8"))), not has.startswith("no row")
        if is_mentioned != is_expected:
            found.append(f"{file} {'does not mention' if is_expected else 'mentions'} the op: change the row of it")
    return found


class AddAnOp(unittest.TestCase):
    def test_the_files_exist_and_mention_the_op(self) -> None:
        self.assertEqual(faults(PAGE.read_text(encoding="utf-8"), ROOT), [])

    def test_every_part_has_a_file(self) -> None:
        parts = [row[0] for row in rows_of(PAGE.read_text(encoding="utf-8"))]
        self.assertEqual(list(dict.fromkeys(parts)), PARTS.split())

    def test_planted_faults_are_found(self) -> None:
        page = "| part | file | has | needed |\n| --- | --- | --- | --- |\n| a | `gone.cc` | it | x |\n"
        page += "| a | `other.cc` | it | x |\n| a | `op.cc` | it | x |\n| a | `table.py` | no row: y | x |\n\nText.\n"
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("other.cc", "nn.relu"), ("op.cc", "op::kLeakyRelu"), ("table.py", "nn.leaky_relu")):
                (Path(folder) / name).write_text(text)
            said = faults(page, Path(folder))
        self.assertEqual(
            [text.partition(":")[0] for text in said],
            [
                "`gone.cc` does not exist",
                "`other.cc` does not mention the op",
                "`table.py` mentions the op",
            ],
        )


if __name__ == "__main__":
    sys.exit(unittest.main())
