"""Writes op_cases.txt whole, and keeps the numbers that another numpy or processor rounds otherwise."""

from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("op_cases.txt")
_UNITS = 4  # numpy's functions, built for other processors, differ from each other by 1 to 2 units in the last place


def _is_near(new: str, old: str, dtype: np.dtype) -> bool:
    """Whether two numbers of that dtype are some units in the last place apart."""
    a, b = dtype.type(new), dtype.type(old)
    return bool(np.isfinite(a) and np.isfinite(b) and abs(a - b) <= _UNITS * np.spacing(max(abs(a), abs(b))))


def _kept_line(new: str, old: str) -> str:
    """The line of a tensor, with the old numbers where the new ones are near."""
    ours, theirs = new.split(" "), old.split(" ")
    if ours[0] != "out" or not ours[1].startswith("float") or len(ours) != len(theirs):
        return new
    dtype, head = np.dtype(ours[1]), 3 + max(int(ours[2]), 1)  # a scalar has an empty shape
    if ours[:head] != theirs[:head]:
        return new
    numbers = [b if a != b and _is_near(a, b, dtype) else a for a, b in zip(ours[head:], theirs[head:], strict=True)]
    return " ".join(ours[:head] + numbers)


def _blocks(lines: list[str]) -> dict[str, list[str]]:
    """The cases and errors of a file, by their first lines, each up to its `end`."""
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in lines:
        if line.startswith("#"):
            continue
        block.append(line)
        if line == "end":
            blocks[block[0]] = block
            block = []
    return blocks


def merged(new: list[str], old: list[str]) -> list[str]:
    """The new lines; results of a case that is as it was, and has a tolerance, keep numbers that are near."""
    known = _blocks(old)
    result: list[str] = []
    for name, block in _blocks(new).items():
        before = known.get(name, [])
        is_same = len(before) == len(block) and before[1] == block[1]
        if is_same and "tolerance 0" not in block:
            block = [_kept_line(a, b) for a, b in zip(block, before, strict=True)]
        result += block
    return result


def write(lines: list[str], file: Path = FILE) -> None:
    """Writes the file beside the old one and renames it, so that it is whole or as it was."""
    old = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    text = "# Written by src/ops/tests/make_op_cases.py; see there for the command.\n"
    text += "".join(f"{line}\n" for line in merged(lines, old))
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)
