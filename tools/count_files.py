#!/usr/bin/env python3
"""Counts the files that a pass or an op is written in: four, so that a new one needs no more.

    tools/count_files.py [ROOT] [--all]

A pass: the header and source of its name, the list that runs it, its golden file, and whatever else names it. An op:
what registers and lowers it, its header, and the script that makes its cases; where Relay's Python function has another
order of parameters, another default or result than the registry gives, the tables that say so are one more. What knows
an op from elsewhere (a pass, the importer, an analysis) is not counted: the op is whole without it. Nor are the tables
of the names that Relay's users know (relay_passes.txt, relay_ops.txt): they have their rows.

Prints a summary and what is more; exits 1 when ALLOWED does not say why. --all prints every pass and op with its files.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

MOST = 4
PASSES = "src/passes/tests/relay_passes.txt"
OPS = "docs/ops.md"
CASES = "src/ops/tests/make_op_cases.py"

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
# The handles are one line for each op that passes match.
NOT_COUNTED = {"tools/count_files.py", "src/ops/op_handles.h"}
ADAPTERS = "python/headrace/relay/_op_"


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


def files_of_op(name: str, texts: dict[str, str]) -> list[str]:
    rooms = ("src/ops/", "src/lower/")
    quoted = re.compile(rf"^(?!\s*//).*{spellings(name)}", re.MULTILINE)
    named = {file for file, text in texts.items() if file.startswith(rooms) and quoted.search(text)}
    registered = {file for file in named if re.search(rf"OpBuilder\([^;]*?{spellings(name)}", texts[file])}
    headers = {file.removesuffix(".cc") + ".h" for file in registered} & texts.keys()
    return [*sorted(named | headers), CASES]


def is_adapted(name: str, texts: dict[str, str]) -> bool:
    return any(file.startswith(ADAPTERS) and f'"{name}"' in text for file, text in texts.items())


def passes_of(root: Path) -> list[str]:
    rows = (root / PASSES).read_text().splitlines()
    return [row.split("|")[0].strip() for row in rows if row and not row.startswith("#")]


def ops_of(root: Path) -> list[str]:
    text = (root / OPS).read_text().split("\n## Left\n")[0]
    return [name for name in re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE) if name not in WORDS]


def main(arguments: list[str]) -> int:
    root = Path(next((a for a in arguments if not a.startswith("-")), Path(__file__).resolve().parents[1]))
    texts = sources(root)
    groups = {
        "passes": {name: files_of_pass(root, name, texts) for name in passes_of(root)},
        "ops": {name: files_of_op(name, texts) for name in ops_of(root)},
    }
    failures = 0
    for group, rows in groups.items():
        for name, files in rows.items():
            is_more = len(files) > MOST
            failures += is_more and name not in ALLOWED
            if is_more or "--all" in arguments:
                print(
                    f"{name}: {len(files)} ({ALLOWED.get(name, 'no reason') if is_more else 'fine'}): {' '.join(files)}"
                )
        counts = sorted(Counter(len(files) for files in rows.values()).items())
        print(f"{len(rows)} {group}: " + ", ".join(f"{number} in {count} files" for count, number in counts))
    adapted = sum(is_adapted(name, texts) for name in groups["ops"])
    print(f"{adapted} of these ops are in Python's tables, too")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
