"""Writes the operator cases of the installed `onnx` package for opsets 18 to 25, as folders like libonnx-testdata's.

    python3 tests/onnx/make_node_cases.py FOLDER

Each case comes at the version its operator was last changed at. One that a later opset changed (new element types, for
the most part) comes at 25 where it is valid there too. Cases of operators that were not changed since opset 17 are left
to libonnx-testdata, and those of SKIPPED_OPS and SKIPPED_CASES are left out. So are those whose data are not tensors:
sequences and optional values. Does nothing when FOLDER has been written by this script and this package already.
"""

import argparse
import hashlib
import re
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node

OLDEST, NEWEST = 18, 25
# Models without tensors, or that a checker needs code of others for.
SKIPPED_OPS = {"ImageDecoder", "StringConcat", "StringSplit", "RegexFullMatch", "StringNormalizer"}


# Attention in 16 bits spelled out as a chain of operators (the expected results round once, not at each step), two in
# bfloat16 whose expected results, which numpy rounded at each step, are two neighbours off those of float64, and Mod of
# floats without fmod, which no opset up to 25 allows. Inverse Fourier transforms whose expected zeros are what float32
# leaves of them, 2e-7 and more, where sums in float64 leave 3e-15.
SKIPPED_CASES = re.compile(
    r"test_attention_(.*(bf16|fp16)_expanded|4d_causal(_padded_kv)?_bf16)|test_mod_float.*fmod_0|test_dft_inverse(_opset19)?$"
)


def default_opset(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def lowered(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model at the newest opset, where that has all it uses."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for opset in copy.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = NEWEST
    try:
        onnx.checker.check_model(copy, full_check=True)
    except Exception:  # whatever it finds, the case is not one of this opset
        return None
    return copy


def chosen_model(model: onnx.ModelProto | None) -> onnx.ModelProto | None:
    if model is None or any(n.op_type in SKIPPED_OPS for n in model.graph.node):
        return None
    if any(o.domain not in ("", "ai.onnx") for o in model.opset_import):
        return None
    version = default_opset(model)
    if version < OLDEST:
        return None
    return model if version <= NEWEST else lowered(model)


def write_values(folder: Path, word: str, names: list[str], values: list[object]) -> None:
    for i, (name, value) in enumerate(zip(names, values, strict=False)):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
        tensor.name = name
        (folder / f"{word}_{i}.pb").write_bytes(tensor.SerializeToString())


def is_tensors(values: list[object]) -> bool:
    return all(isinstance(v, np.ndarray | np.generic | onnx.TensorProto) for v in values)


def write_case(folder: Path, model: onnx.ModelProto, data_sets: list) -> None:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, (inputs, outputs) in enumerate(data_sets):
        own = folder / f"test_data_set_{i}"
        own.mkdir()
        write_values(own, "input", [v.name for v in model.graph.input], inputs)
        write_values(own, "output", [v.name for v in model.graph.output], outputs)


def write_cases(folder: Path) -> int:
    count = 0
    for one in node.collect_testcases(None):
        model = None if SKIPPED_CASES.match(one.name) else chosen_model(one.model)
        if model is None or not all(is_tensors(list(i)) and is_tensors(list(o)) for i, o in one.data_sets):
            continue
        write_case(folder / one.name, model, one.data_sets)
        count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    mark = f"{onnx.__version__} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
    stamp = folder / "written-by"
    if stamp.is_file() and stamp.read_text() == mark:
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    warnings.simplefilter("ignore", RuntimeWarning)  # the cases divide by zero on purpose
    count = write_cases(folder)
    stamp.write_text(mark)
    print(f"{count} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
