"""Outputs of onnxruntime that are kept in the repository, for machines without it. Standard library only.

expected/NAME.json (at full size expected/full/NAME.json) has the version of onnxruntime, the sha256 of the model and of
the files of its inputs one after another, and of each output up to 4,096 values at seeded positions. Inputs are sums of
random numbers of Python, which are the same for a seed everywhere.
A model or inputs with another sha256 are an error, since the outputs would be others.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import math
import random
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "expected"
MOST_VALUES = 4096
# The least limit of `headrace verify` for the difference of float32 outputs and the peer's (docs/cli-json.md).
LIMIT = 1e-5
FORMATS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|b1": "?", "|u1": "B", "|i1": "b"}


@dataclass(frozen=True)
class Array:
    """A dense array, as a .npy file has it."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def values(self) -> list[float]:
        """Its elements."""
        kind = FORMATS[self.dtype]
        return list(struct.unpack(f"<{len(self.data) // struct.calcsize(kind)}{kind}", self.data))


def read_npy(path: Path) -> Array:
    """A .npy file of format version 1."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10 : 10 + length].decode("latin1"))
    if header["fortran_order"] or data[6] != 1:
        raise ValueError(f"{path} is not in row-major order or of another format version")
    return Array(header["descr"], header["shape"], data[10 + length :])


def write_npy(path: Path, array: Array) -> None:
    """Writes an array as a .npy file."""
    header = repr({"descr": array.dtype, "fortran_order": False, "shape": array.shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.data)


def random_array(shape: Sequence[int], seed: int = 1, scale: float = 1.0) -> Array:
    """About normal numbers, float32: sums of twelve uniform ones, which every machine adds alike."""
    numbers = random.Random(seed)
    count = math.prod(shape)
    values = [scale * (sum(numbers.random() for _ in range(12)) - 6) for _ in range(count)]
    return Array("<f4", tuple(shape), struct.pack(f"<{count}f", *values))


def positions(count: int) -> list[int]:
    """The elements that are kept: all, or seeded ones."""
    if count <= MOST_VALUES:
        return list(range(count))
    numbers = random.Random(1)
    return [int(numbers.random() * count) for _ in range(MOST_VALUES)]


def sha256_of(paths: Sequence[Path]) -> str:
    """The SHA-256 of the bytes of files, one after another, in hexadecimal digits."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def encode(array: Array) -> dict:
    """Returns the record of an output: some of its elements, and a summary of all."""
    values = array.values()
    kept = [values[i] for i in positions(len(values))]
    text = base64.b64encode(struct.pack(f"<{len(kept)}{FORMATS[array.dtype]}", *kept)).decode()
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0)
    return {
        "dtype": array.dtype,
        "shape": list(array.shape),
        "largest": float(largest),
        "values": [text[i : i + 100] for i in range(0, len(text), 100)],
    }


def difference(kept: dict, array: Array) -> float:
    """The largest difference at the kept positions, relative to the largest element of the whole output; infinite where
    one is not a number, or the dtypes or shapes differ."""
    if array.dtype != kept["dtype"] or list(array.shape) != kept["shape"]:
        return math.inf
    values = array.values()
    data = base64.b64decode("".join(kept["values"]))
    chosen = positions(len(values))
    wanted = struct.unpack(f"<{len(chosen)}{FORMATS[array.dtype]}", data)
    worst = 0.0
    for i, want in zip(chosen, wanted, strict=True):
        off = abs(values[i] - want)
        worst = max(worst, off if math.isfinite(off) else 0.0 if values[i] == want else math.inf)
    return worst / (kept["largest"] or 1)


def rewrite(name: str, model: Path, sources: Mapping[str, Path], python: str, folder: Path) -> None:
    """Makes the file anew, with onnxruntime in another Python; CalledProcessError when that fails.

    `sources` has the .npy file of each input, by its name.
    """
    script = Path(__file__).resolve().parent / "run_onnxruntime.py"
    command = [python, str(script), str(model), str(folder), *(f"{key}={path}" for key, path in sources.items())]
    version = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout.strip()
    outputs = [encode(read_npy(file)) for file in sorted(folder.glob("output_*.npy"))]
    digests = {"model": sha256_of([model]), "input": sha256_of(list(sources.values()))}
    report = {"onnxruntime": version} | digests | {"outputs": outputs}
    file = FOLDER / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=1) + "\n")


def check(name: str, model: Path, sources: Mapping[str, Path], outputs: Sequence[Path]) -> float:
    """The largest difference of outputs of ours from those that are kept. ValueError when there are none, or when they
    are of another model or of other inputs."""
    file = FOLDER / f"{name}.json"
    if not file.is_file():
        raise ValueError(f"there is no {file.name}; write it with --rewrite-expected")
    report = json.loads(file.read_text())
    for key, paths in (("model", [model]), ("input", list(sources.values()))):
        if sha256_of(paths) != report[key]:
            named = ", ".join(map(str, paths))
            raise ValueError(f"{file.name} is of another {key} than {named}; write it anew with --rewrite-expected")
    if len(outputs) != len(report["outputs"]):
        return math.inf
    return max(difference(kept, read_npy(path)) for kept, path in zip(report["outputs"], outputs, strict=True))
