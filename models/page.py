#!/usr/bin/env python3
"""The real page as PP-OCR's text detector wants it: a picture of text, resized and normalised.

    models/page.py OUT.npy

Writes f32[1,3,384,768] of `page.png` (models/fetch.py gets it). Needs numpy and Pillow.

Exit codes: 0 written, 2 wrong usage, 3 the picture or the output file cannot be used, 4 numpy, Pillow or PyPI is
missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "models"))
import fetch  # noqa: E402  (it lies beside this file)

PAGE_SHAPE = (1, 3, 384, 768)
# Mean and deviation of the pictures that the detector was trained on, a channel of 0..1.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def load_page(path: Path, numpy: Any, image: Any) -> Any:
    """The picture as f32[1,3,h,w], normalised a channel; `numpy` and Pillow's `Image` are the caller's."""
    picture = image.open(path).convert("RGB").resize((PAGE_SHAPE[3], PAGE_SHAPE[2]))
    levels = numpy.asarray(picture, numpy.float32) / 255
    levels = (levels - numpy.float32(MEAN)) / numpy.float32(DEVIATION)
    return numpy.ascontiguousarray(levels.transpose(2, 0, 1)[None])


def main(arguments: list[str]) -> int:
    """The command line."""
    if len(arguments) != 1 or not arguments[0].endswith(".npy"):
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        print(f"{error}: ./dev setup installs it where PyPI can be reached", file=sys.stderr)
        return 4
    try:
        numpy.save(arguments[0], load_page(fetch.fetch(["page.png"])["page.png"], numpy, Image))
    except fetch.UnreachableError as error:
        print(error, file=sys.stderr)
        return 4
    except (fetch.FetchError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
