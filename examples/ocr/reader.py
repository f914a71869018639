"""The pipeline: page -> prepare -> detect -> crop -> angle -> turn -> read, by width -> write -> lines of text.

A page has any number of crops, but a request of a pipeline has one result. So a page stays one request, and its crops
are the *rows* of that request: the classifier and the recognisers are stages with `rows="any"`, whose calls share the
rows of several pages, and each page gets its own rows back. A second pipeline, with one request for each crop, would
batch as well, but a stage of the first would have to wait for its tickets: that stage would hold a thread without
computing, an error of a crop would have to be carried over by hand, and cancelling a page would not reach its crops.

The recogniser has a stage for each width of its artifacts. Each page goes through all of them, with no rows where it
has no crop of that width, and a stage without rows calls no model. `write` joins what they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import boxes
import ctc
import numpy as np
import pictures
from codes import Codes
from headrace import pipeline

# The published pipeline's limits: below them a crop is not turned, and a text is left out.
TURN_ABOVE = 0.9
TEXT_ABOVE = 0.5
UPSIDE_DOWN = 1  # the classifier's label


@dataclass(frozen=True)
class Piece:
    """A text that lies together on the page, and how sure the recogniser is of it, 0..1."""

    text: str
    score: float
    box: np.ndarray


Lines = list[list[Piece]]


def text_of(lines: Lines) -> str:
    """The text of a page: its lines, the pieces of each joined by spaces."""
    return "\n".join(" ".join(piece.text for piece in line) for line in lines)


@dataclass(frozen=True)
class Steps:
    """The steps between the models, as functions that stages call."""

    canvas: tuple[int, int]
    widths: Sequence[int]
    characters: Sequence[str]

    def prepare(self, page: np.ndarray) -> tuple[np.ndarray, float]:
        """The detector's input, and the page's scale in it."""
        return pictures.page_tensor(page, self.canvas)

    def crop(
        self, page: np.ndarray, scale: float, marks: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """The boxes of a page, its crops, and these as rows for the classifier."""
        height, width = page.shape[:2]
        found = boxes.inside(boxes.find_boxes(marks[0, 0]) / scale, height, width)
        crops = [boxes.cut(page, box) for box in found]
        return found, crops, _rows(crops, pictures.ANGLE_WIDTH)

    def turn(self, crops: list[np.ndarray], angles: np.ndarray) -> tuple[Any, ...]:
        """The width class of each crop, and the crops of each class, upright, as rows for its recogniser."""
        upright = boxes.turned(crops, [row[UPSIDE_DOWN] > TURN_ABOVE for row in angles])
        classes = [pictures.width_class(crop, self.widths) for crop in upright]
        groups: list[list[np.ndarray]] = [[] for _ in self.widths]
        for crop, chosen in zip(upright, classes, strict=True):
            groups[chosen].append(crop)
        return classes, *(_rows(group, width) for group, width in zip(groups, self.widths, strict=True))

    def write(self, found: np.ndarray, classes: list[int], *read: np.ndarray) -> Lines:
        """The lines of a page, from its boxes, the class of each and what the recogniser of each class read."""
        rows = [iter(probabilities) for probabilities in read]
        texts = [ctc.decode(next(rows[chosen]), self.characters) for chosen in classes]
        pieces = [Piece(*text, box) for text, box in zip(texts, found, strict=True)]
        lines = [[pieces[index] for index in line] for line in boxes.reading_lines(found)]
        sure = [[piece for piece in line if piece.text.strip() and piece.score >= TEXT_ABOVE] for line in lines]
        return [line for line in sure if line]


def _rows(crops: list[np.ndarray], width: int) -> np.ndarray:
    rows = [pictures.line_tensor(crop, width) for crop in crops]
    return np.array(rows, np.float32).reshape(-1, 3, pictures.LINE_HEIGHT, width)


def build(steps: Steps, codes: Codes, *, threads: int, max_batch: int) -> pipeline.Pipeline:
    """The pipeline of pages: each request is one picture, its result the `Lines` of that page."""
    graph = pipeline.Graph()
    options = {"max_batch": max_batch, "rows": "any", "threads": threads}
    rows = [f"rows{width}" for width in steps.widths]
    read = [f"read{width}" for width in steps.widths]

    prepare = graph.stage(steps.prepare, "prepare", outputs=["x", "scale"])
    detect = graph.stage(codes.detect, "detect", threads=threads)
    crop = graph.stage(steps.crop, "crop", outputs=["boxes", "crops", "rows"])
    angle = graph.stage(codes.angle, "angle", **options)
    turn = graph.stage(steps.turn, "turn", outputs=["classes", *rows])
    readers = [graph.stage(codes.read[width], f"read {width}", **options) for width in steps.widths]
    write = graph.stage(steps.write, "write", inputs=["boxes", "classes", *read], outputs=["lines"])

    page = graph.input("page")
    page.connect(prepare.input("page"))
    page.connect(crop.input("page"))
    prepare.output("x").connect(detect.input(0))
    prepare.output("scale").connect(crop.input("scale"))
    detect.output().connect(crop.input("marks"))
    crop.output("rows").connect(angle.input(0))
    crop.output("crops").connect(turn.input("crops"))
    angle.output().connect(turn.input("angles"))
    for reader, taken, given in zip(readers, rows, read, strict=True):
        turn.output(taken).connect(reader.input(0))
        reader.output().connect(write.input(given))
    crop.output("boxes").connect(write.input("boxes"))
    turn.output("classes").connect(write.input("classes"))
    write.output("lines").connect(graph.output("lines"))
    return graph.build()


def read_page(steps: Steps, functions: Codes, page: np.ndarray) -> Lines:
    """Reads one page, one step after another on the caller's thread; `functions` are callable."""
    x, scale = steps.prepare(page)
    found, crops, rows = steps.crop(page, scale, functions.detect(x))
    classes, *groups = steps.turn(crops, functions.angle(rows))
    read = [functions.read[width](group) for width, group in zip(steps.widths, groups, strict=True)]
    return steps.write(found, classes, *read)
