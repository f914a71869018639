"""Pictures made of characters, and the boxes around marked areas. Standard library only."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Box = tuple[int, int, int, int]  # top, left, bottom, right; the last two are one past the end
Grid = Sequence[Sequence[float]]


def can_draw_blocks() -> bool:
    """Whether stdout takes box-drawing characters."""
    try:
        "░▒▓█┌─┐│└┘".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def shade(level: float) -> str:
    """One character for a level in 0..1."""
    shades = " ░▒▓█" if can_draw_blocks() else " .:*#"
    return shades[min(len(shades) - 1, max(0, int(level * len(shades))))]


def draw_side_by_side(pictures: Sequence[Grid], captions: Sequence[str]) -> str:
    """Small pictures of one size in a row, two characters a pixel, each over its caption."""
    lines = ["  ".join("".join(shade(x) * 2 for x in row) for row in rows) for rows in zip(*pictures, strict=True)]
    width = 2 * len(pictures[0][0])
    lines.append("  ".join(caption.ljust(width) for caption in captions))
    return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True)
class Area:
    """The box around pixels that touch, and how many they are."""

    box: Box
    pixels: int


def find_areas(marked: Iterable[tuple[int, int]]) -> list[Area]:
    """Each group of marked pixels (row, column) that touch, from the top down."""
    left_over = set(marked)
    areas = []
    while left_over:
        group = [left_over.pop()]
        for y, x in group:
            around = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left_over
            left_over -= around
            group.extend(around)
        ys, xs = zip(*group, strict=True)
        areas.append(Area((min(ys), min(xs), max(ys) + 1, max(xs) + 1), len(group)))
    return sorted(areas, key=lambda area: area.box)


def grow(area: Area, height: int, width: int, ratio: float) -> Box:
    """The box of an area moved outwards by `ratio` times pixels over circumference, inside a picture of that size."""
    top, left, bottom, right = area.box
    by = round(ratio * area.pixels / (2 * (bottom - top + right - left)))
    return max(0, top - by), max(0, left - by), min(height, bottom + by), min(width, right + by)


def scale_box(box: Box, rows: float, columns: float) -> Box:
    """A box in another unit: by `rows` down and by `columns` across, rounded outwards."""
    top, left, bottom, right = box
    return int(top * rows), int(left * columns), math.ceil(bottom * rows), math.ceil(right * columns)


def draw_boxes(ink: Grid, boxes: Iterable[Box]) -> str:
    """A picture of levels in 0..1, a character a cell, with the outlines of boxes (in cells) over it."""
    corners, across, down = ("┌┐└┘", "─", "│") if can_draw_blocks() else ("++++", "-", "|")
    cells = [[shade(level) for level in row] for row in ink]
    for top, left, bottom, right in boxes:
        last_row, last_column = max(top + 1, bottom - 1), max(left + 1, right - 1)
        for x in range(left, last_column + 1):
            for y in (top, last_row):
                put(cells, y, x, across)
        for y in range(top, last_row + 1):
            for x in (left, last_column):
                put(cells, y, x, down)
        at = ((top, left), (top, last_column), (last_row, left), (last_row, last_column))
        for (y, x), corner in zip(at, corners, strict=True):
            put(cells, y, x, corner)
    return "\n".join("".join(row).rstrip() for row in cells)


def put(cells: list[list[str]], y: int, x: int, character: str) -> None:
    """Writes one cell, if there is such a one."""
    if 0 <= y < len(cells) and 0 <= x < len(cells[y]):
        cells[y][x] = character


def draw_table(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns; the first row is the heading."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
