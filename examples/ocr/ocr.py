#!/usr/bin/env python3
"""Reads the text of pictures of pages with the three trained models of PP-OCRv4, as a pipeline.

    ./dev python examples/ocr/ocr.py PICTURE... [--threads 1] [--max-batch 2] [--compare]

The detector marks the text of a page, the classifier says which of the cut-out lines are upside down, the recogniser
reads them (reader.py has the pipeline). Prints the text in reading order, and what each stage did. With --compare it
also reads the pages with onnxruntime in place of Headrace's artifacts, and one page at a time, and prints how many
pages a second each way reads.

The models come from PyPI, once (models/fetch.py), and are compiled once for each size of pages. It needs the packages
opencv-python-headless and pyclipper (./dev setup --peers installs them). The pictures are held in memory.

Exit codes: 0 fine, 2 wrong usage, 3 a picture or a folder cannot be used, 4 a package or the models are missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from errors import UnusableError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
import fetch  # noqa: E402  (it lies beside the models)

# Names to import, and the names by which pip knows them.
PACKAGES = {"numpy": "numpy", "cv2": "opencv-python-headless", "pyclipper": "pyclipper", "onnx": "onnx"}
PEERS = {"onnxruntime": "onnxruntime"}


def missing_packages(packages: dict[str, str]) -> list[str]:
    """Those that are not installed, by pip's names."""
    return [name for module, name in packages.items() if importlib.util.find_spec(module) is None]


def between(least: int, most: int) -> Callable[[str], int]:
    """Makes a type of argument: an integer from `least` to `most`."""

    def integer(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not from {least} to {most}")
        return value

    return integer


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", type=Path, metavar="PICTURE")
    parser.add_argument("--threads", type=between(1, 1024), default=1, help="threads of each model (default: 1)")
    parser.add_argument(
        "--max-batch", type=between(1, 64), default=2, help="lines that a model reads at once (default: 2)"
    )
    parser.add_argument(
        "--side",
        type=between(32, 8192),
        default=960,
        help="pixels of a page's longer side that the detector sees (960)",
    )
    parser.add_argument("--compare", action="store_true", help="time other ways, too")
    parser.add_argument("--rounds", type=between(6, 1000), default=15, help="rounds of the comparison (default: 15)")
    parser.add_argument(
        "--cache", type=Path, help="folder of the compiled models (default: ocr in the cache of models/fetch.py)"
    )
    return parser.parse_args(arguments)


def fetched(names: Sequence[str]) -> dict[str, Path]:
    """The files of the models; UnusableError where their folder cannot be written."""
    try:
        return fetch.fetch(names)
    except OSError as error:
        raise UnusableError(
            f"cannot write models to '{fetch.cache_folder()}': {error.strerror}; HEADRACE_MODELS may name another "
            "folder"
        ) from error


def run(args: argparse.Namespace) -> None:
    """Reads the pictures and prints their texts, the stages and the comparison."""
    import codes
    import compare
    import ctc
    import pictures
    import reader
    from headrace import pipeline

    pages = [pictures.read_picture(path) for path in args.pictures]
    models = fetched(codes.MODELS)
    canvas = pictures.canvas_for(pages, args.side)
    folder = args.cache or fetch.cache_folder().parent / "ocr"
    artifacts = codes.compiled(models, folder, canvas, widths=codes.WIDTHS, max_batch=args.max_batch, say=say)
    steps = reader.Steps(canvas, codes.WIDTHS, ctc.read_characters(models[codes.RECOGNISER]))
    options = {"threads": args.threads, "max_batch": args.max_batch}
    with reader.build(steps, artifacts, **options) as pipe:
        for path, lines in zip(args.pictures, pipe.map(pages), strict=True):
            print_page(path, reader.text_of(lines), len(pages))
        print(f"\n{pipeline.format_metrics(pipe.metrics())}")
    if args.compare:
        print(f"\n{compare.compare(pages, steps, artifacts, models, rounds=args.rounds, **options)}")


def print_page(path: Path, text: str, pages: int) -> None:
    """Prints the text of a page, under its name where there are several."""
    if pages > 1:
        print(f"== {path}")
    if text:
        print(text, flush=True)
    else:
        say(f"no text was found in '{path}'")


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit code."""
    args = parse_arguments(arguments)
    if missing := missing_packages(PACKAGES | (PEERS if args.compare else {})):
        return fail(4, f"not installed: {', '.join(missing)}; pip install {' '.join(missing)}, or ./dev setup --peers")
    if importlib.util.find_spec("headrace") is None:
        return fail(4, "the package headrace is not installed; start this as ./dev python examples/ocr/ocr.py")
    from headrace import UserError

    try:
        run(args)
    except fetch.UnreachableError as error:
        return fail(4, str(error))
    except (fetch.FetchError, UnusableError, UserError) as error:
        return fail(3, str(error))
    return 0


def say(line: str) -> None:
    """A line of progress."""
    print(f"ocr: {line}", file=sys.stderr, flush=True)


def fail(code: int, message: str) -> int:
    """Says why the program ends, and returns its exit code."""
    say(message)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
