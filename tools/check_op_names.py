#!/usr/bin/env python3
"""Checks that ops are matched by identity, not by name.

    tools/check_op_names.py [ROOT]

Passes, the planner, lowering, the driver and the interpreter ask for an op with a handle (src/ops/op_handles.h) or for
a fact of an op (src/ops/op_facts.h). Rules:

  literal   no string literal in these rooms is the name of a registered op, except in the files of TABLES, which map op
            names to rows, in the functions that set rules on ops by name (REGISTRATIONS), and where WORDS says that the
            literal is another word of the same letters
  compare   no comparison of an op's name or of a part of it (`as_op()->name ==`, `->name.starts_with`), also of one
            that a variable holds
  handle    each handle in src/ops/op_handles.h names a registered op, and something uses it

The names of ops come from src/ops: `OpBuilder("name"`, a pattern as `OpBuilder(fmt::format("nn.conv{}d"`, and calls of
the helpers there whose first parameter is `name`. Tests and test kits are free.

Prints one line for each violation and exits 1, or a summary and 0.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOMS = (
    *(f"src/{room}" for room in ("passes", "partition", "cost", "plan", "lower", "driver", "functions", "interp")),
    "tools/headrace",
)
# Tables of op names, and of what each stands for.
TABLES = {
    "src/passes/nn/precision_lists.cc": "the categories of ToMixedPrecision",
}
# Folders whose functions register_...() set rules on ops by name: only there may literals name ops.
REGISTRATIONS = ("src/lower/rules/",)
REGISTRATION = re.compile(r"(?:static )?void register_\w+\(")
# Literals that are other words: how scatter joins elements, how a loss is reduced, which factors commute, the label of
# a step or a stage, how a mode rounds or pads, a verb or a key of a report.
WORDS = {
    "src/lower/rules/grid.cc": {"zeros"},
    "src/lower/rules/group_norm.cc": {"mean"},
    "src/lower/rules/image.cc": {"ceil", "round"},
    "src/lower/rules/loss.cc": {"sum"},
    "src/lower/rules/normalization.cc": {"mean"},
    "src/lower/rules/scatter.cc": {"add", "max", "mean", "min"},
    "src/lower/rules/vision.cc": {"max"},
    "src/passes/gradient/index_rules.cc": {"add"},
    "src/passes/gradient/normalize_rules.cc": {"mean"},
    "src/passes/gradient/reduce_rules.cc": {"add"},
    "src/functions/ops_functions.cc": {"any"},
    "src/plan/graph_program.cc": {"copy"},
    "tools/headrace/peer_options.cc": {"all"},
    "tools/headrace/pipeline_inspect.cc": {"any"},
    "tools/headrace/pipeline_split.cc": {"split"},
    "tools/headrace/plan.cc": {"equal"},
    "tools/headrace/run_outputs.cc": {"max", "mean", "min"},
}
HANDLES = "src/ops/op_handles.h"

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
NAME = re.compile(r"[a-z][\w]*(?:\.[a-z]\w*)*\Z")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
PARTS = r"(?:starts_with|ends_with|substr|find|rfind|compare|contains)\("
COMPARE = re.compile(rf"(?:\bop|as_op\(\))(?:->|\.)name(?:\s*[!=]=|\.{PARTS})|[!=]=\s*[\w>().-]*as_op\(\)->name\b")
HELD = re.compile(r"\b(\w+) = [^;]*(?:\bop|as_op\(\))(?:->|\.)name;")
HANDLE = re.compile(r'\bOpHandle\s+(k\w+)\{"([^"]+)"\}')
# A function or a lambda of src/ops that registers the op of its first parameter.
HELPER = re.compile(r"\b(\w+)(?: = \[[^\]]*\])?\((?:const char\*|std::string|std::string_view) name\b")
BUILDER = re.compile(r"\bOpBuilder(?:\s+\w+)?\(\s*(?:fmt::format\(\s*)?\"([^\"]+)\"")
LOOP = re.compile(r"for \(const char\* name : \{([^}]*)\}\)")
ROW = re.compile(r'\{\s*"([^"]+)",')


def without_comments(text: str) -> str:
    """The text with comments blanked out, lines kept; quotes hide what looks like a comment."""
    parts = re.compile(f"{LITERAL.pattern}|{COMMENT.pattern}", re.DOTALL)
    return parts.sub(lambda m: m[0] if m[0].startswith('"') else re.sub(r"[^\n]", " ", m[0]), text)


def is_test(path: Path) -> bool:
    return path.name.endswith("_test.cc") or "tests" in path.parts


def sources(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix in (".h", ".cc") and not is_test(path)]


def names_in(text: str) -> set[str]:
    """The names of the ops that one file of src/ops registers; a pattern where a name is put together."""
    found = set(BUILDER.findall(text))
    if "OpBuilder" not in text:
        return found
    for helper in set(HELPER.findall(text)):
        found.update(re.findall(rf'\b{helper}(?:<[^;()"]*>)?\(\s*"([^"]+)"', text))
    for names in LOOP.findall(text):
        found.update(LITERAL.findall(names))
    if re.search(r"OpBuilder\(row\.name", text):
        found.update(ROW.findall(text))
    return found


def registered_ops(root: Path) -> re.Pattern[str]:
    """A pattern that matches the name of any registered op."""
    names = set()
    for path in sources(root / "src" / "ops"):
        names.update(names_in(without_comments(path.read_text(encoding="utf-8"))))
    patterns = [
        re.escape(name).replace(r"\{\}", r"\w+") for name in sorted(names) if NAME.match(name.replace("{}", "x"))
    ]
    return re.compile("(?:" + "|".join(patterns) + r")\Z") if patterns else re.compile(r"(?!)")


def compares(line: str, held: set[str]) -> bool:
    """Whether a line compares the name of an op; `held` are the variables that hold one."""
    pattern = "|".join(map(re.escape, sorted(held)))
    return bool(COMPARE.search(line)) or bool(
        held and re.search(rf"(?<![\w.>])(?:{pattern})\s*[!=]=|[!=]=\s*(?:{pattern})(?![\w(.\[]|->)", line)
    )


def check_file(root: Path, path: Path, ops: re.Pattern[str]) -> list[str]:
    name = path.relative_to(root).as_posix()
    may_register = name.startswith(REGISTRATIONS)
    is_table, held, faults = name in TABLES, set(), []
    for number, line in enumerate(without_comments(path.read_text(encoding="utf-8")).split("\n"), 1):
        if line.lstrip().startswith("#include"):
            continue
        if may_register and REGISTRATION.match(line):
            is_table = True
        held.update(HELD.findall(line))
        if compares(line, held):
            faults.append(f"{name}:{number}: compare: an op is matched by its name; use a handle of {HANDLES}")
        for literal in [] if is_table else LITERAL.findall(line):
            if ops.match(literal) and literal not in WORDS.get(name, set()):
                faults.append(f'{name}:{number}: literal: "{literal}" names an op; use a handle of {HANDLES}')
        if line.startswith("}") or (may_register and line.endswith("}") and REGISTRATION.match(line)):
            is_table, held = name in TABLES, set()
    return faults


def check_handles(root: Path, ops: re.Pattern[str]) -> tuple[list[str], int]:
    path = root / HANDLES
    handles = HANDLE.findall(path.read_text(encoding="utf-8")) if path.exists() else []
    used: set[str] = set()
    for source in [source for top in ("src", "tools") for source in sources(root / top)]:
        if source != path:
            used.update(re.findall(r"\bop::(k\w+)", source.read_text(encoding="utf-8")))
    faults = []
    for handle, op in handles:
        if not ops.match(op):
            faults.append(f"{HANDLES}: handle: {handle} names '{op}', and src/ops registers no such op")
        if handle not in used:
            faults.append(f"{HANDLES}: handle: nothing uses {handle}; delete it")
    return faults, len(handles)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent).resolve()
    ops = registered_ops(root)
    faults, count = check_handles(root, ops)
    files = [path for room in ROOMS for path in sources(root / room)]
    for path in files:
        faults.extend(check_file(root, path, ops))
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(files)} files match ops by {count} handles")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
