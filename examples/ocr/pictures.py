"""Pictures in, tensors out: what the three models of PP-OCRv4 want to see.

A picture is u8[h,w,3] with the channels blue, green and red, as OpenCV reads it and as the models were trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from errors import PictureError

LINE_HEIGHT = 48  # height of the pictures that the classifier and the recogniser were trained on
ANGLE_WIDTH = 192  # width of the classifier's pictures
LONG_SIDE = 960  # PP-OCR's detector gets pages whose longer side is at most this
STRIDE = 32  # the detector halves its picture five times


def _levels(mean: Sequence[float], deviation: Sequence[float]) -> np.ndarray:
    """The tables f32[3,256] that normalise the values 0..255 of each channel."""
    values = np.arange(256) / 255
    return np.stack([(values - m) / d for m, d in zip(mean, deviation, strict=True)]).astype(np.float32)


# The published models were trained on channels normalised by these numbers.
PAGE_LEVELS = _levels((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
LINE_LEVELS = _levels((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def read_picture(path: Path) -> np.ndarray:
    """Reads a picture from a file; PictureError for one that is not there or is not a picture."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PictureError(f"cannot read the picture '{path}': {error.strerror}") from error
    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    except cv2.error as error:
        raise PictureError(f"cannot read the picture '{path}': {error.err}") from error
    if picture is None:
        raise PictureError(f"'{path}' is not a picture that OpenCV reads; give it a PNG, JPEG, TIFF, WebP or BMP file")
    return picture


def page_scale(page: np.ndarray, long_side: int) -> float:
    """The factor that makes a page's longer side at most `long_side`; a small page keeps its size."""
    return min(1.0, long_side / max(page.shape[:2]))


def canvas_for(pages: Sequence[np.ndarray], long_side: int = LONG_SIDE) -> tuple[int, int]:
    """Height and width, multiples of the detector's stride, of the smallest canvas that holds each scaled page."""
    sizes = [np.multiply(page.shape[:2], page_scale(page, long_side)).round().clip(1) for page in pages]
    height, width = (math.ceil(max(sides) / STRIDE) * STRIDE for sides in zip(*sizes, strict=True))
    return height, width


def page_tensor(page: np.ndarray, canvas: tuple[int, int]) -> tuple[np.ndarray, float]:
    """A page as the detector reads it, f32[1,3,h,w], and the factor by which it was scaled.

    The page lies in the upper left corner of the canvas, and the rest is 0, the mean of the training pictures.
    """
    height, width = page.shape[:2]
    scale = min(1.0, canvas[0] / height, canvas[1] / width)
    tensor = np.zeros((1, 3, *canvas), np.float32)
    _put(tensor[0], _scaled(page, round(height * scale), round(width * scale)), PAGE_LEVELS)
    return tensor, scale


def line_tensor(crop: np.ndarray, width: int) -> np.ndarray:
    """A crop as the classifier and the recogniser read it, f32[3,48,width].

    It keeps its aspect, and zeros fill the rest; a crop that is too long for the width is squeezed into it.
    """
    tensor = np.zeros((3, LINE_HEIGHT, width), np.float32)
    _put(tensor, _scaled(crop, LINE_HEIGHT, min(width, line_width(crop))), LINE_LEVELS)
    return tensor


def line_width(crop: np.ndarray) -> int:
    """The width of a crop that is scaled to the height of a line."""
    height, width = crop.shape[:2]
    return math.ceil(LINE_HEIGHT * width / height)


def width_class(crop: np.ndarray, widths: Sequence[int]) -> int:
    """The index of the smallest of the ascending widths that holds a crop, or of the largest if none does."""
    width = line_width(crop)
    return next((index for index, limit in enumerate(widths) if width <= limit), len(widths) - 1)


def _scaled(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    return cv2.resize(picture, (max(1, width), max(1, height)), interpolation=cv2.INTER_LINEAR)


def _put(tensor: np.ndarray, picture: np.ndarray, levels: np.ndarray) -> None:
    """Writes a normalised picture into the upper left corner of a tensor f32[3,h,w]."""
    height, width = picture.shape[:2]
    for channel, plane in enumerate(cv2.split(picture)):
        tensor[channel, :height, :width] = cv2.LUT(plane, levels[channel])
