"""The pixels of a PNG or JPEG file, for `--input NAME=FILE` of the program headrace. Needs Pillow.

    python3 -m headrace.image_input --width W --height H --channels 3 --resize crop --to PIXELS -- FILE
    python3 -m headrace.image_input --check

The second only says whether Pillow is there. The first writes a file of H x W pixels, row by row, each as the bytes
red, green, blue, or as one grey byte. The one line on stdout is `ready`, `missing WHAT` or `error SENTENCE`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

try:
    from PIL import Image, ImageOps, UnidentifiedImageError
except ImportError as error:
    if __name__ != "__main__":
        raise
    print(f"missing {error}; install it: {sys.executable} -m pip install pillow", flush=True)
    sys.exit()

__all__ = ["main"]

# About 300 MB when decoded. A compressed file of a few KB can claim more.
_MOST_PIXELS = 100_000_000
_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")


def __dir__() -> list[str]:
    return __all__


class _Refused(Exception):
    """An image that cannot be an input; the text is a sentence without the file's name."""


def _depth(path: Path, image: Image.Image) -> int:
    """Bits of a channel as the file holds them: Pillow reads colours of 16 bits as 8."""
    if image.format != "PNG":
        return 8
    with path.open("rb") as file:
        return file.read(25)[24]  # signature 8, IHDR: length 4, name 4, width 4, height 4, depth 1


def _decoded(path: Path) -> Image.Image:
    """The image, upright and loaded, with 8 bits a channel."""
    try:
        image = Image.open(path, formats=("PNG", "JPEG"))
    except UnidentifiedImageError:
        raise _Refused("it is not a PNG or JPEG image that can be read") from None
    if image.width * image.height > _MOST_PIXELS:
        pixels = f"{image.width} x {image.height} pixels"
        raise _Refused(f"it has {pixels}, more than {_MOST_PIXELS // 1_000_000} million; make it smaller")
    if _depth(path, image) == 16:
        raise _Refused("its channels have 16 bits; save it with 8")
    if image.mode not in _MODES:
        raise _Refused(f"its colours are {image.mode}; save it as RGB or grey")
    try:
        image.load()
        return ImageOps.exif_transpose(image)
    except Exception as error:
        raise _Refused(f"it is damaged: {error}") from None


def _opaque(image: Image.Image, mode: str) -> Image.Image:
    """The image in `mode`, RGB or L; without its alpha channel, which must say that all of it is opaque."""
    if image.has_transparency_data:
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema()[0] < 255:
            raise _Refused("some of its pixels are transparent; save it with a background")
    return image.convert(mode)


def _resized(image: Image.Image, size: tuple[int, int], rule: str) -> Image.Image:
    """The image of that width and height."""
    if image.size == size:
        return image
    if rule == "none":
        pixels = f"{image.width} x {image.height} pixels"
        raise _Refused(f"it has {pixels}, but the input takes {size[0]} x {size[1]}; leave out --resize none")
    if rule == "stretch":
        return image.resize(size, Image.Resampling.BILINEAR)
    return ImageOps.fit(image, size, Image.Resampling.BILINEAR)


def main() -> None:
    """Decodes one image."""
    parser = argparse.ArgumentParser(prog="python3 -m headrace.image_input", description=__doc__)
    parser.add_argument("image", nargs="?", type=Path)
    parser.add_argument("--width", type=int)
    parser.add_argument("--height", type=int)
    parser.add_argument("--channels", type=int, choices=(1, 3))
    parser.add_argument("--resize", choices=("crop", "stretch", "none"))
    parser.add_argument("--to", type=Path)
    parser.add_argument("--check", action="store_true", help="only say whether Pillow is there")
    args = parser.parse_args()
    Image.MAX_IMAGE_PIXELS = None  # _decoded has a limit of its own, which is an error and not a warning
    try:
        if not args.check:
            image = _opaque(_decoded(args.image), "RGB" if args.channels == 3 else "L")
            args.to.write_bytes(_resized(image, (args.width, args.height), args.resize).tobytes())
        print("ready")
    except Exception as error:
        print("error", " ".join(str(error).split()))


if __name__ == "__main__":
    main()
