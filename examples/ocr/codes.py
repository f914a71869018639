"""The three models as codes that stages run: artifacts of Headrace, or sessions of onnxruntime."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
from errors import CacheError
from pictures import ANGLE_WIDTH, LINE_HEIGHT

DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
RECOGNISER = "ch_PP-OCRv4_rec_infer.onnx"
MODELS = (DETECTOR, CLASSIFIER, RECOGNISER)
WIDTHS = (160, 320, 640, 1280)  # the recogniser is compiled for each of these

Rows = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Codes:
    """The code of each model: a code for `Graph.stage`, or (`callables`, `sessions`) a function.

    `detect` takes one page f32[1,3,h,w], `angle` and each of `read`, by its width, any number of crops f32[n,3,48,w].
    """

    detect: Any
    angle: Any
    read: Mapping[int, Any]


def batch_sizes(max_batch: int) -> list[int]:
    """The batches that artifacts are compiled for: powers of two up to the largest, and the largest.

    A call that has fewer rows than its artifact computes rows of zeros, so the next batch is at most twice as large.
    """
    powers = [1 << i for i in range(max_batch.bit_length())]
    return sorted({*powers, max_batch})


def compiled(
    models: Mapping[str, Path],
    folder: Path,
    canvas: tuple[int, int],
    *,
    widths: Sequence[int],
    max_batch: int,
    say: Callable[[str], object] = lambda line: None,
) -> Codes:
    """The artifacts of the models, as paths; those that the folder does not have are compiled into it.

    The detector has one artifact, for the canvas of all pages. The other two have one for each batch, and the
    recogniser one for each width and batch. `say` gets a line for each compile. Raises CacheError for a folder that
    cannot be written.
    """

    def one(name: str, shape: tuple[int, ...]) -> Path:
        return _artifact(models[name], folder, shape, say)

    def by_batch(name: str, width: int) -> dict[int, Path]:
        return {batch: one(name, (batch, 3, LINE_HEIGHT, width)) for batch in batch_sizes(max_batch)}

    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Codes(
            detect=one(DETECTOR, (1, 3, *canvas)),
            angle=by_batch(CLASSIFIER, ANGLE_WIDTH),
            read={width: by_batch(RECOGNISER, width) for width in widths},
        )
    except OSError as error:
        raise CacheError(
            f"cannot write artifacts to '{folder}': {error.strerror}; --cache names another folder"
        ) from error


def _artifact(model: Path, folder: Path, shape: tuple[int, ...], say: Callable[[str], object]) -> Path:
    """The artifact of a model for a shape of its input `x`."""
    key = hashlib.sha256(hr.__version__.encode() + model.read_bytes()).hexdigest()[:12]
    size = "x".join(map(str, shape))
    path = folder / f"{model.stem}-{size}-{key}.so"
    if not _runs_here(path):
        say(f"compiling {model.name} for {size}")
        with tempfile.TemporaryDirectory(dir=folder) as own:  # other processes see it whole or not at all
            partial = Path(own) / path.name
            hr.compile(model, shapes={"x": shape}, threads=1, output=partial)
            partial.replace(path)
    return path


def _runs_here(path: Path) -> bool:
    """Whether there is an artifact that this machine and this version of Headrace can run."""
    try:
        hr.load(path, threads=1)
    except hr.UserError:  # it is not there or damaged, or was compiled for another processor
        return False
    return True


def callables(artifacts: Codes, threads: int) -> Codes:
    """Functions that run artifacts outside of a pipeline, each model on so many threads."""

    def by_batch(paths: Mapping[int, Path]) -> Rows:
        programs = {batch: hr.load(path, threads=threads) for batch, path in paths.items()}
        return _in_parts(lambda part: _run_padded(programs, part), max(programs))

    page = hr.load(artifacts.detect, threads=threads)
    return Codes(
        detect=lambda x: np.asarray(page(x)),
        angle=by_batch(artifacts.angle),
        read={width: by_batch(paths) for width, paths in artifacts.read.items()},
    )


def sessions(models: Mapping[str, Path], threads: int, *, widths: Sequence[int], max_batch: int) -> Codes:
    """Functions that run the models by onnxruntime; each has so many threads, and each width a session of its own."""
    import onnxruntime  # only a comparison needs it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # at the end of a run, for those beside it

    def run_of(name: str) -> Rows:
        session = onnxruntime.InferenceSession(models[name], options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x})[0]

    return Codes(
        detect=run_of(DETECTOR),
        angle=_in_parts(run_of(CLASSIFIER), max_batch),
        read={width: _in_parts(run_of(RECOGNISER), max_batch) for width in widths},
    )


def _run_padded(programs: Mapping[int, Callable[[np.ndarray], Any]], rows: np.ndarray) -> np.ndarray:
    """Runs the program of the smallest batch that holds the rows, filled up with rows of zeros, as a stage does."""
    batch = min(size for size in programs if size >= len(rows))
    zeros = np.zeros((batch - len(rows), *rows.shape[1:]), rows.dtype)
    return np.asarray(programs[batch](np.concatenate([rows, zeros]) if len(zeros) else rows))[: len(rows)]


def _in_parts(run: Rows, most: int) -> Rows:
    """A function that runs any number of rows, at most so many in one call of `run`; none give none."""

    def run_all(rows: np.ndarray) -> np.ndarray:
        parts = [run(rows[begin : begin + most]) for begin in range(0, len(rows), most)]
        return np.concatenate(parts) if parts else rows

    return run_all
