"""Checks the tables of docs/coming-from.md: tests and options that they name exist. Standard library only.

    tests/docs/test_coming_from.py --program headrace --opt headrace-opt [TEST ...]

Each row answers options of another tool. Its third column has an answer, or a dash with a reason. In an answer,
`bench --rounds` is a verb of the program with an option of its help, `--plugin` an option that every verb takes, `hr.x`
something in python/headrace, and a name in capitals an environment variable. The last column names the tests, as
`FILE::test` or `FILE: Suite.Name`. coming_from_options.txt has the options that the tools have.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import functools
import re
import subprocess
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/coming-from.md"
TOOLS_OPTIONS = ROOT / "tests/docs/coming_from_options.txt"
HEADER = ["option", "what it does", "here", "test"]
TABLES_WITHOUT_OPTIONS = ["tool", "command"]
PROGRAMS: dict[str, str] = {}


@dataclass(frozen=True)
class Row:
    """A row of a table: the texts in backquotes of its columns, and whether a dash begins the third."""

    line: int
    section: str
    options: tuple[str, ...]
    answers: tuple[str, ...]
    is_refusal: bool
    has_reason: bool
    tests: tuple[str, ...]


def quoted(cell: str) -> tuple[str, ...]:
    """The texts in backquotes."""
    return tuple(re.findall(r"`([^`]+)`", cell))


def read_rows(text: str) -> list[Row]:
    """The rows of all tables of options."""
    rows: list[Row] = []
    section, columns = "", []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            section = line.lstrip("#").strip()
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not columns:
            columns = cells
            if columns not in (HEADER, TABLES_WITHOUT_OPTIONS):
                raise ValueError(f"line {number}: a table has the columns {columns}; they are {HEADER}")
        elif len(cells) != len(columns):
            raise ValueError(f"line {number}: {len(cells)} cells in a table of {len(columns)} columns")
        elif columns == HEADER and set(cells) != {"---"}:
            option, _, here, test = cells
            refusal = here == "-" or here.startswith("- ")
            rows.append(Row(number, section, quoted(option), quoted(here), refusal, len(here) > 2, quoted(test)))
    return rows


def read_tools(text: str) -> dict[str, list[str]]:
    """The options of each tool."""
    tools: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            tools[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            tools[list(tools)[-1]] += line.split()
    return tools


@functools.cache
def help_of(program: str, *verb: str) -> str:
    """The help of a program or of one of its verbs; empty where there is no such verb."""
    command = [PROGRAMS[program], *verb, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    # Behind a verb that it does not have, the program shows its own help.
    usage = " ".join(["Usage:", program, *verb, "[OPTIONS]"])
    return done.stdout if usage in done.stdout else ""


def options_in(help_text: str) -> set[str]:
    """The names that begin the lines of options of a help."""
    lines = re.findall(r"^  (-[^ ]*)", help_text, re.MULTILINE)
    return {name for line in lines for name in line.split(",") if name.startswith("-")}


@functools.cache
def python_words() -> set[str]:
    """The names that the package defines: modules, functions, classes, parameters, variables, keys of tables."""
    names = set()
    for source in (ROOT / "python/headrace").rglob("*.py"):
        names |= {source.stem, source.parent.name}
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.alias)):
                names.add(node.name)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Dict):
                names |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return names


def split_answer(answer: str) -> tuple[list[str], list[str]]:
    """The program with its verb, and the options."""
    words = answer.split()
    names = [word for word in words if not word.startswith("-")]
    return names, [word for word in words if word.startswith("-")]


def problem_of_answer(answer: str) -> str | None:
    """Why an answer is none, or None."""
    if answer.startswith("hr."):
        unknown = set(re.findall(r"\w+", answer)) - {"hr"} - python_words()
        return f"python/headrace has no {', '.join(sorted(unknown))}" if unknown else None
    if re.fullmatch(r"[A-Z][A-Z_]+", answer):
        return None
    names, options = split_answer(answer)
    if names[:1] == ["headrace-opt"]:
        known = options_in(help_of("headrace-opt"))
    elif names and not help_of("headrace", *names):
        return f"the program has no verb '{' '.join(names)}'"
    else:
        known = options_in(help_of("headrace", *names)) | options_in(help_of("headrace"))
    missing = [option for option in options if option not in known]
    return f"the help of '{' '.join(names) or 'headrace'}' has no {', '.join(missing)}" if missing else None


def problem_of_test(test: str) -> str | None:
    """Why a name is of no test, or None."""
    python, cpp = re.fullmatch(r"(\S+\.py)::(\w+)", test), re.fullmatch(r"(\S+\.cc): (\w+)\.(\w+)", test)
    found = python or cpp
    if found is None:
        return f"'{test}' is neither FILE.py::test nor FILE.cc: Suite.Name"
    path = ROOT / found[1]
    if not path.is_file():
        return f"there is no file {found[1]}"
    pattern = rf"^ *(async )?def {python[2]}\(" if python else rf"^TEST\w*\(\s*{cpp[2]},\s*{cpp[3]}\s*\)"
    return None if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE) else f"'{test}' is not a test"


def options_not_in_tests(row: Row) -> list[str]:
    """The options and variables of a row's answers that its test files do not have. C++ tests alone have none."""
    files = {test.split("::")[0] for test in row.tests if "::" in test}
    text = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in sorted(files))
    wanted = [word for answer in row.answers if not answer.startswith("hr.") for word in answer.split()]
    wanted = [word for word in wanted if word.startswith("-") or word.isupper()]
    return [word for word in wanted if files and not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def problems_of_row(row: Row) -> list[str]:
    """The problems of a row."""
    problems = [problem for answer in row.answers if (problem := problem_of_answer(answer))]
    problems += [problem for test in row.tests if (problem := problem_of_test(test))]
    if not row.options:
        problems.append("it names no option")
    if row.is_refusal:
        problems += [] if row.has_reason else ["it has no answer and no reason"]
        problems += ["it has no answer, and names tests"] if row.tests else []
    else:
        problems += [] if row.answers else ["its third column has neither an option nor a dash"]
        problems += [] if row.tests else ["it names no test"]
    if not problems:
        problems += [f"its test files do not have {option}" for option in options_not_in_tests(row)]
    return [f"docs/coming-from.md:{row.line}: {problem}" for problem in problems]


def problems_of_section(rows: list[Row], tool: str, options: list[str]) -> list[str]:
    """The options of a tool that no row answers or two do, and those of rows that the tool does not have."""
    patterns = [option for row in rows if row.section == tool for option in row.options]
    problems = [f"{tool}: {option} is in two rows" for option in sorted(set(patterns)) if patterns.count(option) > 1]
    for option in options:
        if option not in patterns and not any(fnmatch.fnmatchcase(option, pattern) for pattern in patterns):
            problems.append(f"{tool}: {option} is in no row")
    for pattern in sorted(set(patterns)):
        if not fnmatch.filter(options, pattern):
            problems.append(f"{tool}: it has no option {pattern}")
    return problems


class ComingFrom(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.rows = read_rows(PAGE.read_text(encoding="utf-8"))
        self.tools = read_tools(TOOLS_OPTIONS.read_text(encoding="utf-8"))

    def test_options_and_tests_exist(self) -> None:
        self.assertGreater(len(self.rows), 100)
        self.assertEqual([problem for row in self.rows for problem in problems_of_row(row)], [])

    def test_every_option_of_the_tools_is_answered_once(self) -> None:
        self.assertEqual({row.section for row in self.rows}, set(self.tools))
        found = [problem for tool, options in self.tools.items() for problem in
                 problems_of_section(self.rows, tool, options)]  # fmt: skip
        self.assertEqual(found, [])


class MistakesAreFound(unittest.TestCase):
    """Rows with one mistake each."""

    GOOD_TEST = "`tests/cli/test_cli_times.py::test_bench`"

    def problems(self, here: str, test: str = GOOD_TEST, option: str = "`-r`") -> str:
        table = "## tool\n| option | what it does | here | test |\n| --- | --- | --- | --- |\n"
        (row,) = read_rows(f"{table}| {option} | runs | {here} | {test} |\n")
        return "\n".join(problems_of_row(row))

    def test_right_rows(self) -> None:
        for here in ("`bench --rounds`", "`bench`, always", "`--json`", "`bench --rounds --json`"):
            self.assertEqual(self.problems(here), "", here)
        self.assertEqual(self.problems("- not a CPU matter", "-"), "")
        self.assertEqual(self.problems("`hr.InferenceSession`"), "")
        cpp = "`src/driver/compile_test.cc: Compile.ThreadsChangeNoBits`"
        self.assertEqual(self.problems("`run --threads`", cpp), "")

    def test_answers(self) -> None:
        self.assertIn("docs/coming-from.md:4: the help of 'bench' has no --round", self.problems("`bench --round`"))
        self.assertIn("the help of 'run' has no --rounds", self.problems("`run --rounds`"))
        self.assertIn("the help of 'headrace' has no --rounds", self.problems("`--rounds`"))
        self.assertIn("the help of 'headrace-opt' has no --rounds", self.problems("`headrace-opt --rounds`"))
        self.assertIn("the program has no verb 'tune'", self.problems("`tune --rounds`"))
        self.assertIn("python/headrace has no NoSuchSession", self.problems("`hr.NoSuchSession`"))
        self.assertIn("has neither an option nor a dash", self.problems("it is so"))
        self.assertIn("it has no answer and no reason", self.problems("-", "-"))
        self.assertIn("the help of 'compile' has no --frob", self.problems("- see `compile --frob`", "-"))
        self.assertIn("it names no option", self.problems("`bench`", option="-r"))

    def test_tests(self) -> None:
        self.assertIn("it names no test", self.problems("`bench --rounds`", "-"))
        self.assertIn("there is no file tests/no.py", self.problems("`bench`", "`tests/no.py::test_x`"))
        self.assertIn("is not a test", self.problems("`bench`", "`tests/cli/test_cli.py::test_benc`"))
        self.assertIn("is not a test", self.problems("`bench`", "`src/driver/compile_test.cc: Compile.Threads`"))
        self.assertIn("is neither FILE.py::test nor", self.problems("`bench`", "`tests/cli/test_cli.py`"))
        self.assertIn("its test files do not have --range", self.problems("`bench --range`"))
        self.assertIn("its test files do not have NO_SUCH_VARIABLE", self.problems("`NO_SUCH_VARIABLE`"))
        self.assertIn("it has no answer, and names tests", self.problems("- not yet"))

    def test_options_of_a_tool(self) -> None:
        table = "## tool\n| option | what it does | here | test |\n| --- | --- | --- | --- |\n"
        rows = read_rows(table + "".join(f"| {cell} | x | - y | - |\n" for cell in ("`-a`, `-b`", "`--c_*`", "`-b`")))
        self.assertEqual(
            problems_of_section(rows, "tool", ["-a", "--c_1", "-d"]),
            ["tool: -b is in two rows", "tool: -d is in no row", "tool: it has no option -b"],
        )

    def test_tables_of_another_form(self) -> None:
        with self.assertRaisesRegex(ValueError, "line 1: a table has the columns"):
            read_rows("| option | here |\n")
        with self.assertRaisesRegex(ValueError, "line 3: 3 cells in a table of 4 columns"):
            read_rows("| option | what it does | here | test |\n| --- | --- | --- | --- |\n| a | b | c |\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--opt", required=True, help="the program headrace-opt")
    given, rest = parser.parse_known_args()
    PROGRAMS |= {"headrace": given.program, "headrace-opt": given.opt}
    unittest.main(argv=[sys.argv[0], *rest])
