"""The geometry of boxes: from the detector's map of probabilities to upright crops in reading order.

A box is f32[4,2]: the corners x, y of a rectangle of any angle, clockwise from the upper left one. The detector was
trained by differentiable binarization (Liao et al., "Real-time Scene Text Detection with Differentiable Binarization",
AAAI 2020), which marks each text a little smaller than it is, so that neighbours stay apart. Its boxes are grown again.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import pyclipper

# Those of the published pipeline (config.yaml of rapidocr-onnxruntime 1.4.4).
MARK_ABOVE = 0.3  # a pixel is text
BOX_ABOVE = 0.5  # the mean of a box of text
UNCLIP_RATIO = 1.6
MOST_BOXES = 1000
LEAST_MARKED = 3  # pixels of the shorter side, before a box is grown
LEAST_GROWN = 5  # and after that
TALL = 1.5  # a crop this much higher than wide has text from top to bottom
# pyclipper counts in integers: this many to a pixel.
STEPS_A_PIXEL = 256


def corners_of(points: np.ndarray) -> tuple[np.ndarray, float]:
    """The rectangle of least area around points [n,2], as a box, and the length of its shorter side."""
    rectangle = cv2.minAreaRect(np.asarray(points, np.float32))
    corners = cv2.boxPoints(rectangle)
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    upper_left, lower_left = left[np.argsort(left[:, 1], kind="stable")]
    upper_right, lower_right = right[np.argsort(right[:, 1], kind="stable")]
    return np.stack([upper_left, upper_right, lower_right, lower_left]), min(rectangle[1])


def mean_inside(marks: np.ndarray, box: np.ndarray) -> float:
    """The mean of a map f32[h,w] over the pixels of a box."""
    height, width = marks.shape
    low = np.clip(np.floor(box.min(axis=0)).astype(int), 0, (width - 1, height - 1))
    high = np.clip(np.ceil(box.max(axis=0)).astype(int), 0, (width - 1, height - 1))
    part = marks[low[1] : high[1] + 1, low[0] : high[0] + 1]
    mask = np.zeros(part.shape, np.uint8)
    cv2.fillPoly(mask, [(box - low).astype(np.int32)], 1)
    return float(cv2.mean(part, mask)[0])


def unclip(box: np.ndarray, ratio: float) -> np.ndarray:
    """The outline [n,2] around a box at the distance `ratio` * area / perimeter, which undoes the training's shrinking.

    The law is equation 10 of the paper on differentiable binarization.
    """
    area, perimeter = cv2.contourArea(box), cv2.arcLength(box, closed=True)
    offset = pyclipper.PyclipperOffset()
    corners = np.rint(box * STEPS_A_PIXEL).astype(int).tolist()
    offset.AddPath(corners, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    (outline,) = offset.Execute(ratio * area / perimeter * STEPS_A_PIXEL)
    return np.array(outline, np.float32) / STEPS_A_PIXEL


def find_boxes(marks: np.ndarray) -> np.ndarray:
    """The boxes f32[n,4,2] of the text that a map f32[h,w] of probabilities marks, in its pixels."""
    mask = cv2.dilate((marks > MARK_ABOVE).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    found = []
    for contour in contours[:MOST_BOXES]:
        marked, short = corners_of(contour[:, 0])
        if short < LEAST_MARKED or mean_inside(marks, marked) < BOX_ABOVE:
            continue
        grown, short = corners_of(unclip(marked, UNCLIP_RATIO))
        if short >= LEAST_GROWN:
            found.append(grown)
    return np.array(found, np.float32).reshape(-1, 4, 2)


def inside(found: np.ndarray, height: int, width: int) -> np.ndarray:
    """The boxes with their corners moved into a page, without those that are then less than a pixel wide or high."""
    moved = np.clip(found, 0, (width, height)).astype(np.float32)
    sides = np.linalg.norm(moved - np.roll(moved, -1, axis=1), axis=2)
    return moved[(sides >= 1).all(axis=1)]


def reading_lines(boxes: np.ndarray) -> list[list[int]]:
    """The indices of boxes f32[n,4,2] by lines from top to bottom, each from left to right.

    A box belongs to a line if its middle is less than half of the height of the line's first box off that one's middle.
    Columns are not looked for.
    """
    middles = boxes.mean(axis=1)
    heights = np.linalg.norm(boxes[:, 3] - boxes[:, 0], axis=1)
    lines: list[list[int]] = []
    for index in np.argsort(middles[:, 1], kind="stable").tolist():
        first = lines[-1][0] if lines else None
        if first is not None and middles[index, 1] - middles[first, 1] < heights[first] / 2:
            lines[-1].append(index)
        else:
            lines.append([index])
    return [sorted(line, key=lambda index: float(middles[index, 0])) for line in lines]


def cut(page: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The part of a page in a box, made a rectangle; text from top to bottom is turned to run from left to right."""
    upper, right, lower, left = (float(np.linalg.norm(box[i] - box[(i + 1) % 4])) for i in range(4))
    width, height = max(1, round(max(upper, lower))), max(1, round(max(left, right)))
    target = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    crop = cv2.warpPerspective(
        page,
        cv2.getPerspectiveTransform(box.astype(np.float32), target),
        (width, height),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return cv2.rotate(crop, cv2.ROTATE_90_COUNTERCLOCKWISE) if height >= TALL * width else crop


def turned(crops: Sequence[np.ndarray], are_upside_down: Sequence[bool]) -> list[np.ndarray]:
    """The crops, with those that are upside down turned by half a circle."""
    return [
        cv2.rotate(crop, cv2.ROTATE_180) if is_upside_down else crop
        for crop, is_upside_down in zip(crops, are_upside_down, strict=True)
    ]
