#!/usr/bin/env python3
"""Counts the files that a pass or an op is written in.

    tools/count_files.py [ROOT] [--all]

A pass: the header and source of its name, the list that runs it, its golden file, and whatever else names it; four, so
that a new one needs no more. The table of the names that Relay's users know (relay_passes.txt) has its row.

An op: every file that names it, by its name in quotes or by its handle, in the roles of ROLES. NEEDED are the roles
that each op has: what it computes, its rule, its row in the lists of ToMixedPrecision, its cases (a script, which may
name a whole family, and the text that it makes), the page of ops and the list of Relay's ops. The other roles are for
ops that a pass, the importer, a backend or Python knows: an op has those files only where they do more for it than for
any op.

Prints a summary and what is more; exits 1 when ALLOWED does not say why a pass has more files, and when an op needs
more than MOST_NEEDED. --all prints every pass and op with its files.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

MOST = 4
PASSES = "src/passes/tests/relay_passes.txt"
OPS = "docs/ops.md"
HANDLES = "src/ops/op_handles.h"
CASES = "src/ops/tests/"
MADE_CASES = "src/ops/tests/op_cases.txt"
RELAY_OPS = "src/ops/tests/relay_ops.txt"

# The roles of an op's files by where they lie; the first that fits counts.
ROLES = {
    "list of Relay's ops": RELAY_OPS,
    "cases": CASES,
    "page of ops": OPS,
    "handle": HANDLES,
    "what it computes": "src/ops/",
    "rule": "src/lower/",
    "precision": "src/passes/nn/precision_lists.cc",
    "gradient": "src/passes/gradient/",
    "other passes": "src/passes/",
    "importer": "src/frontend/",
    "Python": "python/",
    "backends": "src/backends/",
    "elsewhere in src": "src/",
    "programs": "tools/",
}
NEEDED = ["what it computes", "rule", "precision", "cases", "page of ops", "list of Relay's ops"]
MOST_NEEDED = 9  # a header, a second source of its rule or of what it computes, and a script of cases beside their text

# The files of passes that have another name than theirs.
STEMS = {
    "InferType": "infer_type",
    **dict.fromkeys(
        ["CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul"], "combine_parallel"
    ),
}

# Why some are more.
ALLOWED: dict[str, str] = {
    "FuseOps": "headrace-opt and the driver have an option for its depth",
    "InferType": "by its Python name, it runs before other passes, as in Relay",
    "Defunctionalization": "in Python it also takes a function and a module, as in Relay",
    "SimplifyInference": "extract_fused_functions runs it, as in Relay",
    "FoldConstant": "the driver runs it by name when it computes weights; the contract of passes shows it",
}

# Words that are also values of attributes or names of C functions: quotes around them say nothing of the op.
WORDS = set(
    "abs add all any arange ceil clip exp floor floor_mod full isinf max mean min mod round sqrt sum zeros".split()  # noqa: SIM905
) | {"reverse"}
NOT_COUNTED = {"tools/count_files.py"}


def sources(root: Path) -> dict[str, str]:
    folders = ("src", "tools", "python/headrace", "python/src")
    paths = [p for folder in folders for p in (root / folder).rglob("*") if p.suffix in {".cc", ".h", ".py"}]
    names = {p.relative_to(root).as_posix(): p for p in paths}
    return {
        name: path.read_text()
        for name, path in sorted(names.items())
        if "_test" not in name and "/tests/" not in name and name not in NOT_COUNTED
    }


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def files_of_pass(root: Path, name: str, texts: dict[str, str]) -> list[str]:
    stem = STEMS.get(name, snake(name))
    found = {file for file, text in texts.items() if f'"{name}"' in text}
    found |= {file for file in texts if re.fullmatch(rf"src/(passes|relay)/\w+/{stem}\.(h|cc)", file)}
    goldens = sorted(
        path.relative_to(root).as_posix()
        for path in (root / "src/passes/tests").glob("*.relay")
        if path.read_text().startswith(f"// pass: {name}\n")
    )
    return [*sorted(found), *goldens[:1]]  # one is needed


def spellings(name: str) -> str:
    """A pattern of the name between quotes, also where a family's sources put it together: "nn.{}_pool{}d"."""
    parts = re.split(r"(\dd\b|\bavg|\bmax|(?<=_)(?:avg|max))", name)
    loose = "".join(
        re.escape(part) if i % 2 == 0 else rf"(?:{part}|\{{\}}{part[1:] if part[0].isdigit() else ''})"
        for i, part in enumerate(parts)
    )
    return f'"{loose}"'


class OpFiles:
    """Which files name which ops, and which register them."""

    def __init__(self, root: Path, texts: dict[str, str]) -> None:
        cases = {p.relative_to(root).as_posix(): p.read_text() for p in (root / CASES).glob("*_cases.py")}
        made_cases = re.findall(r"(?m)^case (\S+) ", (root / MADE_CASES).read_text())
        lists = {place: (root / place).read_text() for place in (OPS, RELAY_OPS)}
        self.by_word: dict[str, set[str]] = defaultdict(set)
        self.loose: dict[str, set[str]] = defaultdict(set)
        self.registered: dict[str, set[str]] = defaultdict(set)
        self.names = set(texts)
        for file, text in texts.items():
            code = re.sub(r"(?m)^\s*(//|#(?!include)).*$", "", text)
            for word in re.findall(r'"([\w.{}]+)"|\bop::(k\w+)', code):
                self.by_word["".join(word)].add(file)
            for word in re.findall(r'"([\w.]*\{\}[\w.{}]*)"', code):
                self.loose[word].add(file)
            for statement in re.findall(r"OpBuilder\(([^;]*)", code):
                for word in re.findall(r'"([\w.{}]+)"', statement):
                    self.registered[word].add(file)
        for file, text in cases.items():
            for word in re.findall(r"[\"']([\w.]+)[\"']", text):
                self.by_word[word].add(file)
        for word in made_cases:
            self.by_word[word].add(MADE_CASES)
        for file, text in lists.items():
            for word in set(re.findall(r"[\w.]+", text)):
                self.by_word[word.rstrip(".")].add(file)
        self.handles = dict(re.findall(r'\bOpHandle\s+(k\w+)\{"([^"]+)"\}', texts[HANDLES]))
        self.handles = {op: handle for handle, op in self.handles.items()}

    def files_of(self, name: str) -> list[str]:
        found = self.by_word[name] | self.by_word[self.handles.get(name, name)]
        registered = set(self.registered[name])
        spelling = re.compile(spellings(name)[1:-1])
        for word in filter(spelling.fullmatch, self.loose):
            found |= self.loose[word]
            registered |= self.registered[word]
        headers = {file.removesuffix(".cc") + ".h" for file in registered} & self.names
        return sorted(found | headers)


def role_of(file: str) -> str:
    return next(role for role, place in ROLES.items() if file.startswith(place))


def needed(files: list[str]) -> list[str]:
    return [file for file in files if role_of(file) in NEEDED]


def passes_of(root: Path) -> list[str]:
    rows = (root / PASSES).read_text().splitlines()
    return [row.split("|")[0].strip() for row in rows if row and not row.startswith("#")]


def ops_of(root: Path) -> list[str]:
    text = (root / OPS).read_text().split("\n## Left\n")[0]
    return [name for name in re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE) if name not in WORDS]


def count_passes(root: Path, texts: dict[str, str], tells_all: bool) -> int:
    """Prints the passes; returns how many have more files than they should."""
    counts, failures = Counter(), 0
    for name in passes_of(root):
        files = files_of_pass(root, name, texts)
        is_more = len(files) > MOST
        counts[len(files)] += 1
        failures += is_more and name not in ALLOWED
        if is_more or tells_all:
            reason = ALLOWED.get(name, "no reason") if is_more else "fine"
            print(f"{name}: {len(files)} ({reason}): {' '.join(files)}")
    print(f"{sum(counts.values())} passes: {told(counts)}")
    return failures


def count_ops(root: Path, texts: dict[str, str], tells_all: bool) -> int:
    """Prints the ops; returns how many need more files than they should."""
    known, counts, totals, roles, failures = OpFiles(root, texts), Counter(), Counter(), Counter(), 0
    for name in ops_of(root):
        files = known.files_of(name)
        count = len(needed(files))
        counts[count] += 1
        totals[len(files)] += 1
        roles.update({role_of(file) for file in files})
        failures += count > MOST_NEEDED
        if count > MOST_NEEDED or tells_all:
            print(f"{name}: needs {count}, {len(files)} in all: {' '.join(files)}")
    print(f"{sum(counts.values())} ops need: {told(counts)}")
    print(f"with all that knows them: {told(totals)}")
    print("ops in each role: " + ", ".join(f"{role} {roles[role]}" for role in ROLES))
    return failures


def told(counts: Counter[int]) -> str:
    return ", ".join(f"{number} in {count} files" for count, number in sorted(counts.items()))


def main(arguments: list[str]) -> int:
    root = Path(next((a for a in arguments if not a.startswith("-")), Path(__file__).resolve().parents[1]))
    texts = sources(root)
    tells_all = "--all" in arguments
    failures = count_passes(root, texts, tells_all) + count_ops(root, texts, tells_all)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
