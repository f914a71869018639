"""Cases of random numbers: Threefry-4x64-20 by its paper, checked by its authors' known answer for zeros.

See make_op_cases.py.
"""

from collections.abc import Callable

import numpy as np
from op_case_format import case, error, scalar

MASK = 2**64 - 1
KNOWN = [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B]
GENERATE = "random.threefry_generate(%0, out_shape=[{}])"
FLOATS = (("float32", 40), ("float64", 11))  # and how many bits of a word they leave out


def threefry(key: list[int], number: list[int]) -> list[int]:
    schedule = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    rotations = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
    x = [(n + k) & MASK for n, k in zip(number, key, strict=True)]
    for step in range(20):
        for a, turn in ((0, rotations[step % 8][0]), (2, rotations[step % 8][1])):
            b = (a + 1) % 4 if step % 2 == 0 else (a + 3) % 4
            x[a] = (x[a] + x[b]) & MASK
            x[b] = (((x[b] << turn) | (x[b] >> (64 - turn))) & MASK) ^ x[a]
        if step % 4 == 3:
            s = step // 4 + 1
            x = [(v + schedule[(s + i) % 5] + (s if i == 3 else 0)) & MASK for i, v in enumerate(x)]
    return x


def next_key(key: np.ndarray, blocks: int) -> tuple[list[int], np.ndarray]:
    """So many blocks of words, and the key after them."""
    first = sum(int(w) << (64 * i) for i, w in enumerate(key[4:6]))
    place = lambda n: [n & MASK, n >> 64 & MASK, int(key[6]), int(key[7])]  # noqa: E731
    words = [w for n in range(blocks) for w in threefry([int(w) for w in key[:4]], place(first + n))]
    return words, np.array([*key[:4], *place(first + blocks), 0, 0], "uint64")


def units_of(words: list[int], shift: int) -> np.ndarray:
    """The words as numbers from 0 to 1."""
    return np.array([(w >> shift) / 2 ** (64 - shift) for w in words])


def add_generators(key: np.ndarray) -> None:
    assert threefry([0] * 4, [0] * 4) == KNOWN
    zero = np.zeros(10, "uint64")
    _, after = next_key(zero, 1)
    case("threefry known", GENERATE.format("4"), [zero], [after, np.array(KNOWN, "uint64")])
    words, after = next_key(key, 4)
    case("threefry carries", GENERATE.format("3, 5"), [key], [after, np.array(words[:15], "uint64").reshape(3, 5)])
    error("threefry_generate", GENERATE.format("-1"), [key], "out_shape has a negative size")
    sides = []
    for side in range(2):
        number = (2**64 - 2 + side, 7, 0, 9 ^ 2**63)
        sides.append(np.array([*threefry([int(w) for w in key[:4]], list(number)), *[0] * 6], "uint64"))
    case("threefry_split", "random.threefry_split(%0)", [key], sides)
    error("threefry_split", "random.threefry_split(%0)", [key[:9]], "key must be")


def add_distributions(key: np.ndarray) -> None:
    words, after = next_key(key, 5)
    for name, shift in FLOATS:
        units = units_of(words, shift)
        u = (units[:18] * 5 - 2).astype(name).reshape(2, 9)
        args = f'(%0, %1, %2, out_shape=[2, 9], out_dtype="{name}")'
        case(f"uniform {name}", f"random.uniform{args}", [key, scalar(-2, name), scalar(3, name)], [after, u], 1e-6)
        z = (1 + 0.5 * np.sqrt(-2 * np.log(1 - units[::2])) * np.cos(2 * np.pi * units[1::2]))[:9].astype(name)
        args = f'(%0, %1, %2, out_shape=[9], out_dtype="{name}")'
        case(f"normal {name}", f"random.normal{args}", [key, scalar(1, name), scalar(0.5, name)], [after, z], 2e-6)
    wrong = [key, scalar(1), scalar(2, "float64")]
    error("uniform", "random.uniform(%0, %1, %2, out_shape=[9])", wrong, "high must be a scalar of float32")
    error("normal", 'random.normal(%0, %1, %2, out_shape=[9], out_dtype="int32")', wrong, "must be float32 or float64")


def add_choices(ints: Callable[..., np.ndarray]) -> None:
    key = np.array([9, 2, 7, 4, 1, 0, 0, 0, 0, 0], "uint64")
    words, after = next_key(key, 6)
    for name, shift in FLOATS:
        weights = np.array([[0, 2, -3, 1.5, 0.5], [1, 0, 0, 0, 0], [0.125, 0.25, 0.5, 8, np.nan]], name)
        parts = np.where(weights > 0, weights, 0).astype(name)
        units = units_of(words[:21], shift).astype(name).reshape(3, 7)
        found = [
            np.searchsorted(np.cumsum(p, dtype=name), u * p.sum(dtype=name), "right")
            for p, u in zip(parts, units, strict=True)
        ]
        call = "random.multinomial(%0, %1, num_samples=7)"
        case(f"multinomial {name}", call, [key, weights], [after, np.stack(found).astype("int32")])
    nothing = np.array([[1, 2], [0, -1]], "float32")
    error("multinomial sum", "random.multinomial(%0, %1)", [key, nothing], "sum", run=True)
    error("multinomial probs", "random.multinomial(%0, %1)", [key, ints(3)], "probs must be float32 or float64")


def add_random_cases(ints: Callable[..., np.ndarray]) -> None:
    key = np.array([1, 2**63 + 5, 3, 4, 2**64 - 2, 7, 0, 9, 0, 0], "uint64")
    add_generators(key)
    add_distributions(key)
    add_choices(ints)
