"""Inputs of the kit's models of texts: seeded ids of tokens, segments and a mask. Standard library only."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping, Sequence

import expected

# Tokens of a text and rows of the table of words: of the small form, and of the published size.
SMALL = {"bert_base": (16, 1000), "gpt2": (16, 1000)}
FULL = {"bert_base": (128, 30522), "gpt2": (64, 50257)}
NAMES = {"bert_base": ("input_ids", "token_type_ids", "attention_mask"), "gpt2": ("input_ids",)}


def make_inputs(shapes: Mapping[str, Sequence[int]], vocabulary: int, seed: int = 1) -> dict[str, expected.Array]:
    """Returns int64 arrays by the names of the inputs.

    input_ids are random below `vocabulary`. The second half of token_type_ids is 1, the last quarter of attention_mask
    0: two sentences and padding. Raises KeyError for an input of another name.
    """
    numbers = random.Random(seed)
    elements = {
        "input_ids": lambda place, length: int(numbers.random() * vocabulary),
        "token_type_ids": lambda place, length: int(place >= length // 2),
        "attention_mask": lambda place, length: int(place < length - length // 4),
    }
    arrays = {}
    for name, shape in shapes.items():
        values = [elements[name](i % shape[-1], shape[-1]) for i in range(math.prod(shape))]
        arrays[name] = expected.Array("<i8", tuple(shape), struct.pack(f"<{len(values)}q", *values))
    return arrays


def inputs_of(model: str, is_full: bool) -> dict[str, expected.Array]:
    """Returns the inputs of a batch of one text, for a model that write_zoo made, or made with --small."""
    length, vocabulary = (FULL if is_full else SMALL)[model]
    return make_inputs(dict.fromkeys(NAMES[model], (1, length)), vocabulary)
