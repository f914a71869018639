"""From the recogniser's probabilities to text: best path decoding of connectionist temporal classification.

A. Graves et al., "Connectionist Temporal Classification", ICML 2006, section 3.2: take the likeliest label of each
step, drop repeats, then drop blanks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

BLANK = 0  # the label of "no character"


def read_characters(model: Path) -> list[str]:
    """The character of each of the recogniser's labels, from the metadata of its file.

    The blank comes first and a space last; those in between are the lines of `character`.
    """
    metadata = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    return ["", *metadata["character"].split("\n"), " "]


def decode(probabilities: np.ndarray, characters: Sequence[str]) -> tuple[str, float]:
    """The text of f32[steps,labels], and the mean probability of its characters (0 for no text)."""
    labels = probabilities.argmax(axis=1)
    is_new = np.concatenate([[True], labels[1:] != labels[:-1]])
    steps = np.flatnonzero(is_new & (labels != BLANK))
    if not len(steps):
        return "", 0.0
    return "".join(characters[label] for label in labels[steps]), float(probabilities[steps, labels[steps]].mean())
