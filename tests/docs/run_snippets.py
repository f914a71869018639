#!/usr/bin/env python3
"""Runs the snippets of README.md and docs/, as a reader would who types them in. Standard library only.

    tests/docs/run_snippets.py --program headrace [--junit FILE] [PAGE ...]

Of each page the fenced blocks that begin with ```sh or ```python run in order, all in one temporary folder. It has
models/, the sources, the release build, examples/ and a `dev` that knows `./dev headrace` and `./dev python`. A block
that begins with ```text right after such a block is what its stdout must be; `...` stands for any text in a line, and
alone for any lines. A block that says needs=A,B (as in ```python needs=headrace) is left out where the Python of
HEADRACE_PYTHON (default: .venv) cannot import A or B; so is one that says backends=A,B where the build leaves out the
backend A or B. A block that says from=FILE (as in ```cpp from=examples/x.cc)
quotes that file: its lines must be there, in their order and together, but for `...` alone in a line, which stands for
lines that are left out; in a list such a block is indented. Other indented blocks do not run, nor do other languages.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/kit"))
import build_backends  # noqa: E402
import junit  # noqa: E402

SECONDS = 300
FENCE = re.compile(r"(?P<indent> *)```(?P<info>[^`]*)$")


@dataclass
class Snippet:
    """A block that runs, and what it must print (None: anything); or a block that quotes the file `source`."""

    page: Path
    line: int
    language: str
    needs: list[str] = field(default_factory=list)
    backends: list[str] = field(default_factory=list)
    text: str = ""
    expected: str | None = None
    source: str | None = None

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def read_fences(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, info string and text of each fenced block; of indented ones only those that quote a file."""
    block: list[str] | None = None
    start, info, indent = 0, "", ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if block is None:
            if fence and (fence["indent"] == "" or "from=" in fence["info"]):
                block, start, info, indent = [], number, fence["info"].strip(), fence["indent"]
        elif line.startswith(f"{indent}```"):
            yield start, info, "\n".join(block) + "\n"
            block = None
        else:
            block.append(line.removeprefix(indent))
    if block is not None:
        sys.exit(f"{page}:{start}: the block has no end")


def names_of(options: list[str], key: str) -> list[str]:
    """The names behind a key, as in needs=A,B."""
    return [name for option in options if option.startswith(key) for name in option.removeprefix(key).split(",")]


def read_snippets(page: Path) -> list[Snippet]:
    """The snippets of a page."""
    snippets: list[Snippet] = []
    is_after_snippet = False
    for line, info, text in read_fences(page):
        language, *options = info.split() or [""]
        sources = [option[5:] for option in options if option.startswith("from=")]
        if sources:
            snippets.append(Snippet(page, line, language, text=text, source=sources[0]))
        elif language in ("sh", "python"):
            needs, backends = (names_of(options, key) for key in ("needs=", "backends="))
            snippets.append(Snippet(page, line, language, needs, backends, text))
        elif language == "text" and is_after_snippet:
            snippets[-1].expected = text
        is_after_snippet = language in ("sh", "python") and not sources
    return snippets


def is_expected(expected: str, actual: str) -> bool:
    """Whether a text is as the page shows it."""
    lines = [
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"[ ]*\n"
        for line in expected.splitlines()
    ]
    return re.fullmatch("".join(lines), actual) is not None


def missing_part(quote: str, source: str) -> str | None:
    """The first part of a quote that is not in the source behind the parts before it."""
    place = 0
    for part in re.split(r"^[ ]*\.\.\.\n", quote, flags=re.MULTILINE):
        found = f"\n{source}".find(f"\n{part}", place)
        if found < 0:
            return part
        place = found + len(part)
    return None


def check_quote(snippet: Snippet) -> junit.Case:
    """A block that quotes a file."""
    file = ROOT / str(snippet.source)
    if not file.is_file():
        return junit.Case(snippet.name, "failed", f"it quotes {snippet.source}, which is not there")
    missing = missing_part(snippet.text, file.read_text(encoding="utf-8"))
    if missing is not None:
        return junit.Case(snippet.name, "failed", f"{snippet.source} does not have, in this order,\n{missing}")
    return junit.Case(snippet.name, "passed")


def python() -> str:
    """The Python that has the package, or this one."""
    for candidate in (os.environ.get("HEADRACE_PYTHON"), str(ROOT / ".venv/bin/python")):
        if candidate and Path(candidate).is_file():
            return candidate
    return sys.executable


@functools.cache
def can_import(module: str) -> bool:
    """Whether the Python of the snippets has a module."""
    return subprocess.run([python(), "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def make_folder(folder: Path, program: Path) -> None:
    """Fills a folder as a reader's: a clone with a release build, as far as the pages use it."""
    for name in ("models", "include", "src", "third_party", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(program.parent.parent)
    dev = folder / "dev"
    dev.write_text(
        '#!/bin/sh\nverb=$1; shift\ncase "$verb" in\n  headrace) exec headrace "$@" ;;\n'
        f'  python) exec {python()} "$@" ;;\n'
        '  *) echo "a page may not run ./dev $verb" >&2; exit 2 ;;\nesac\n'
    )
    dev.chmod(dev.stat().st_mode | stat.S_IXUSR)


def run_snippet(snippet: Snippet, folder: Path, program: Path) -> junit.Case:
    """One snippet."""
    if snippet.source is not None:
        return check_quote(snippet)
    missing = [name for name in snippet.needs if not can_import(name)]
    if missing:
        return junit.Case(snippet.name, "skipped", f"{python()} has no {', '.join(missing)}")
    left_out = build_backends.left_out(str(program)) if snippet.backends else {}
    absent = [left_out[name] for name in snippet.backends if name in left_out]
    if absent:
        return junit.Case(snippet.name, "skipped", absent[0])
    shell = snippet.language == "sh"
    command = ["bash", "-euo", "pipefail", "-c", snippet.text] if shell else [python(), "-c", snippet.text]
    environment = os.environ | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HEADRACE_PYTHON": python(),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode != 0:
        return junit.Case(snippet.name, "failed", f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if snippet.expected is not None and not is_expected(snippet.expected, done.stdout):
        return junit.Case(snippet.name, "failed", f"it printed\n{done.stdout}\nthe page says\n{snippet.expected}")
    return junit.Case(snippet.name, "passed")


def run_page(page: Path, program: Path) -> list[junit.Case]:
    """The snippets of a page, in one folder; those after a failure say so, since they may need what it did not make."""
    cases: list[junit.Case] = []
    with tempfile.TemporaryDirectory() as name:
        make_folder(Path(name), program)
        for snippet in read_snippets(page):
            case = run_snippet(snippet, Path(name), program)
            if case.outcome == "failed" and any(before.outcome == "failed" for before in cases):
                case = junit.Case(case.name, "failed", f"(after a failure on this page) {case.message}")
            cases.append(case)
    return cases


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    args = parser.parse_args()
    pages = [page.resolve() for page in args.pages] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    cases = [case for page in pages for case in run_page(page, args.program.resolve())]
    for case in cases:
        print(f"{case.outcome:8} {case.name}{': ' + case.message if case.message else ''}")
    if args.junit:
        junit.write_junit(args.junit, "docs", cases)
    failed = sum(case.outcome == "failed" for case in cases)
    print(f"{len(cases)} snippets of {len(pages)} pages, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
