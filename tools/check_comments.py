#!/usr/bin/env python3
"""Checks that comments are plain statements.

    tools/check_comments.py [ROOT]

A comment that begins with "What", "Of", "Who", "The same" or "As above", in either case, names its subject by another
sentence or by the code below. Fails where one begins so, and counts the comments of each KIND:

  C++ comments          lines of // that follow each other, and /* */, where no code stands before them
  C++ trailing comments behind code in the same line
  Python docstrings     of modules, classes and functions
  Python comments       lines of # that follow each other, and those behind code
  script comments       lines of # that follow each other, of CMake and the shell

Files are those with the endings .h, .hpp, .cc, .c, .js, .py, .cmake and .sh, CMakeLists.txt and dev, tests too, outside
of SKIPPED folders and of hidden ones. C++ comments are those of JavaScript, too.

Prints those comments and exits 1, or a summary and 0.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = ("C++ comments", "C++ trailing comments", "Python docstrings", "Python comments", "script comments")
CPP = (".h", ".hpp", ".cc", ".c", ".js")
SCRIPTS = (".cmake", ".sh", "CMakeLists.txt")
# Builds, others' work, and headers of earlier versions, which stay as they were published.
SKIPPED = ("build", "third_party", "tools/html/vendor", "tests/plugins/headers")

OPENING = re.compile(r"(?:what|of|who|the\s+same|as\s+above)\b", re.IGNORECASE)
# String and character literals hide what looks like a comment. A prime between digits separates them.
CPP_PARTS = re.compile(
    r"""R"(?P<raw>[^()\\\s]*)\(.*?\)(?P=raw)" | "(?:[^"\\\n]|\\.)*" | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*'
      | (?P<line>//[^\n]*) | (?P<block>/\*.*?\*/)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass
class Comment:
    """A comment, with the line it begins in and its text without marks."""

    kind: str
    file: str
    line: int
    text: str


def joined(file: str, kind: str, lines: list[tuple[int, str]]) -> Iterator[Comment]:
    """One comment for each run of lines that follow each other."""
    run: Comment | None = None
    last = 0
    for number, text in lines:
        if run is not None and number == last + 1:
            run.text += f" {text}"
        else:
            if run is not None:
                yield run
            run = Comment(kind, file, number, text)
        last = number
    if run is not None:
        yield run


def cpp_comments(file: str, text: str) -> list[Comment]:
    """The comments of a file in C++ or C."""
    lines: list[tuple[int, str]] = []
    found: list[Comment] = []
    for part in CPP_PARTS.finditer(text):
        if part["line"] is None and part["block"] is None:
            continue
        number = text.count("\n", 0, part.start()) + 1
        before = text[text.rfind("\n", 0, part.start()) + 1 : part.start()]
        words = part[0].strip("/*< \n")
        if before.strip():
            found.append(Comment(KINDS[1], file, number, words))
        elif part["line"] is None:
            found.append(Comment(KINDS[0], file, number, words))
        else:
            lines.append((number, words))
    return [*found, *joined(file, KINDS[0], lines)]


def python_comments(file: str, text: str) -> list[Comment]:
    """The docstrings and comments of a file in Python."""
    found: list[Comment] = []
    for node in ast.walk(ast.parse(text, file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                found.append(Comment(KINDS[2], file, node.body[0].lineno, docstring))
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        words = token.string.lstrip("#: ")
        if token.line[: token.start[1]].strip():
            found.append(Comment(KINDS[3], file, token.start[0], words))
        else:
            lines.append((token.start[0], words))
    return [*found, *joined(file, KINDS[3], lines)]


def script_comments(file: str, text: str) -> list[Comment]:
    """The comments of a file of CMake or the shell that stand in lines of their own."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    marked = [(number, line.lstrip("# ")) for number, line in lines if line.startswith("#") and line[1:2] != "!"]
    return [*joined(file, KINDS[4], marked)]


def reader_of(file: str) -> Callable[[str, str], list[Comment]] | None:
    """The function that finds the comments of a file of that name; None for other files."""
    if file.endswith(".py"):
        return python_comments
    if file.endswith(SCRIPTS) or file == "dev":
        return script_comments
    return cpp_comments if file.endswith(CPP) else None


def comments(root: Path) -> list[Comment]:
    """All comments below a folder, in the order of files and lines."""
    found: list[Comment] = []
    for folder, folders, files in os.walk(root):
        place = Path(folder).relative_to(root)
        folders[:] = [one for one in folders if (place / one).as_posix() not in SKIPPED and not one.startswith(".")]
        for name in files:
            file = (place / name).as_posix()
            read = reader_of(file)
            if read is not None:
                found += read(file, (root / file).read_text(encoding="utf-8"))
    return sorted(found, key=lambda comment: (comment.file, comment.line))


def main() -> int:
    """Prints the comments that begin so, or the counts."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent).resolve()
    every = comments(root)
    status, counts = 0, []
    for kind in KINDS:
        total = sum(comment.kind == kind for comment in every)
        unclear = [comment for comment in every if comment.kind == kind and OPENING.match(comment.text)]
        counts.append(f"{total} {kind}")
        if unclear:
            status = 1
            for comment in unclear:
                print(f"{comment.file}:{comment.line}: {comment.text.splitlines()[0]}")
            print(f'{len(unclear)} of {total} {kind} begin with "What", "Of", "Who", "The same" or "As above"')
    if status == 0:
        print(f"plain statements: {', '.join(counts)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
