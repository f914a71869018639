#!/usr/bin/env python3
"""Checks that texts for users have none of the forms that English does not use so.

    tools/check_texts.py [ROOT]

Reads string literals of C++, C and Python, without docstrings and comments, and pages (*.md) without their code blocks,
outside of SKIPPED folders, hidden ones and tests. FORMS lists the forms, each with what to write in its place.

Prints each place and exits 1, or a summary and 0.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

# Builds, others' work, and headers of earlier versions, which stay as they were published.
SKIPPED = ("build", "third_party", "tools/html/vendor", "tests")
CPP = (".h", ".hpp", ".cc", ".c")

FORMS = (
    (
        re.compile(
            r"(?<!there )\b(?:is|are|was|be) no (?!longer\b|more\b|less\b|way\b|room\b|need\b|other\b|better\b)\w",
            re.IGNORECASE,
        ),
        'write "is not a"',
    ),
    (re.compile(r"\b(?:is|are) none of (?!them\b|these\b)"), 'write "is not one of"'),
    (re.compile(r"\bha(?:s|ve) not (?:the|as|a)\b"), 'write "must have" or "does not have"'),
    (re.compile(r"\b(?:only (?:a|the) run|the (?:data|file|model|run)) tells?\b"), 'write "data-dependent" or "says"'),
    (re.compile(r"\bof which \S+ (?:is|are)\b"), "make two sentences"),
    (re.compile(r"\bwhat else\b"), "name the things"),
)

# A raw string, a string, a character literal or a comment. A prime between digits separates them.
CPP_PARTS = re.compile(
    r"""R"(?P<mark>[^()\\\s]*)\((?P<raw>.*?)\)(?P=mark)" | "(?P<text>(?:[^"\\\n]|\\.)*)"
      | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*' | //[^\n]* | /\*.*?\*/""",
    re.DOTALL | re.VERBOSE,
)
# Literals that follow each other are one text.
CPP_JOINT = re.compile(r'(?<!\\)"\s*\n\s*"')


def cpp_texts(text: str) -> Iterator[tuple[int, str]]:
    """The lines and contents of string literals."""
    joined = CPP_JOINT.sub(lambda joint: "\x00" * joint[0].count("\n"), text)
    for part in CPP_PARTS.finditer(joined):
        found = part["raw"] if part["raw"] is not None else part["text"]
        if found is not None:
            before = joined[: part.start()]
            yield before.count("\n") + before.count("\x00") + 1, found.replace("\x00", "")


def python_texts(text: str) -> Iterator[tuple[int, str]]:
    """The lines and contents of strings in expressions: a statement that is a string is a docstring."""
    statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and not statement:
            yield token.start[0], token.string
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def page_texts(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside of its blocks of code."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = line.startswith("```")
        is_code ^= is_fence
        if not is_code and not is_fence and line.strip() and not line.startswith("    "):
            yield number, line


def texts(root: Path) -> Iterator[tuple[str, int, str]]:
    """All texts below a folder: file, line, text."""
    readers = {".py": python_texts, ".md": page_texts} | dict.fromkeys(CPP, cpp_texts)
    for folder, folders, files in os.walk(root):
        place = Path(folder).relative_to(root)
        folders[:] = [
            one
            for one in sorted(folders)
            if (place / one).as_posix() not in SKIPPED and one != "tests" and not one.startswith(".")
        ]
        for name in sorted(files):
            read = readers.get(Path(name).suffix)
            if read is not None and not re.search(r"(^test_|_test\.|^check_texts)", name):
                for line, text in read((root / place / name).read_text(encoding="utf-8")):
                    yield (place / name).as_posix(), line, text


def main() -> int:
    """Prints the texts that have a form, or how many texts there are."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent).resolve()
    count = wrong = 0
    for file, line, text in texts(root):
        count += 1
        for form, remedy in FORMS:
            if found := form.search(text):
                wrong += 1
                print(f'{file}:{line}: "{found[0]}": {remedy}')
    if wrong == 0:
        print(f"plain English: {count} texts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
