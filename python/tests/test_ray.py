"""headrace.ray.Predictor and artifact_ref: batch inference on the rows of datasets."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
import ray_kit  # noqa: E402
from headrace import ray as hray  # noqa: E402
from headrace.ray import _artifacts, _columns, _predictor  # noqa: E402
from size_kit import IS_FULL  # noqa: E402

BATCH = 16


@pytest.fixture(scope="module")
def cluster():
    yield from ray_kit.two_nodes()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("ray") / "digits.so"
    model = ray_kit.ROOT / "models" / "digits.onnx"
    hr.compile(model, shapes={"x": (BATCH, 1, 8, 8)}, threads=1, output=path)
    return path


@pytest.fixture(scope="module")
def expected(artifact, images):
    """The results of this process, in whole batches: the last rows belong to a batch that zeros fill."""
    model = hr.load(artifact)
    rows = -(-len(images) // BATCH) * BATCH
    filled = np.zeros((rows, 1, 8, 8), np.float32)
    filled[: len(images)] = images
    parts = [np.from_dlpack(model(filled[begin : begin + BATCH])) for begin in range(0, rows, BATCH)]
    return np.concatenate(parts)[: len(images)]


def test_nothing_imports_ray_before_it_is_needed():
    program = "import sys, headrace.ray; print('ray' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_without_ray_the_error_says_how_to_install_it(artifact, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # an import of it fails then
    with pytest.raises(hr.MissingError, match=r"pip install '\.\[ray\]'"):
        hray.artifact_ref(artifact)


@pytest.mark.parametrize("rows", [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 5])
def test_any_number_of_rows(artifact, images, expected, rows):
    made = hray.Predictor(artifact)({"x": images[:rows]})
    assert list(made) == ["probabilities"]
    assert made["probabilities"].shape == (rows, 10)
    assert made["probabilities"].dtype == np.float32
    np.testing.assert_array_equal(made["probabilities"], expected[:rows])


def test_names_of_columns(artifact, images, expected):
    predictor = hray.Predictor(artifact, inputs={"x": "image"}, outputs={"probabilities": "p"}, keep=["path"])
    made = predictor({"image": images[:5], "path": np.array(list("abcde"))})
    assert list(made) == ["p", "path"]
    np.testing.assert_array_equal(made["p"], expected[:5])
    assert list(made["path"]) == list("abcde")


def test_a_table_has_the_results_of_arrays(artifact, images, expected):
    pa = pytest.importorskip("pyarrow")
    kind = pa.fixed_shape_tensor(pa.float32(), [1, 8, 8])
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images[:40].reshape(-1)), 64)
    table = pa.table({"x": pa.ExtensionArray.from_storage(kind, flat), "id": pa.array(range(40))})
    made = hray.Predictor(artifact, keep=["id"])(table)
    assert isinstance(made, pa.Table)
    assert made.column("id").to_pylist() == list(range(40))
    np.testing.assert_array_equal(_columns.array_of_column(made.column("probabilities"), "p"), expected[:40])
    joined = pa.concat_tables([table.slice(0, 7), table.slice(7, 33)])
    again = hray.Predictor(artifact, keep=["id"])(joined)
    np.testing.assert_array_equal(_columns.array_of_column(again.column("probabilities"), "p"), expected[:40])
    none = hray.Predictor(artifact, keep=["id"])(table.slice(0, 0))
    assert none.num_rows == 0


def test_a_column_of_one_chunk_is_read_in_place():
    pa = pytest.importorskip("pyarrow")
    values = np.arange(24, dtype=np.float32)
    nested = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(pa.array(values), 3), 2)
    read = _columns.array_of_column(pa.chunked_array([nested]), "x")
    assert read.shape == (4, 2, 3)
    assert np.shares_memory(read, values)
    sliced = _columns.array_of_column(pa.chunked_array([nested.slice(1, 2)]), "x")
    np.testing.assert_array_equal(sliced, values.reshape(4, 2, 3)[1:3])
    out = np.ones((4, 2, 3), np.float32)
    back = _columns.array_of_column(_columns.table_of({"y": out}, {}).column("y"), "y")
    assert np.shares_memory(back, out)


def test_nulls_are_refused():
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(hr.UserError, match="column 'x' has 1 nulls"):
        _columns.array_of_column(pa.chunked_array([pa.array([1.0, None])]), "x")
    rows = pa.FixedSizeListArray.from_arrays(pa.array([1.0, None]), 1)
    with pytest.raises(hr.UserError, match="column 'x' has 1 nulls in its rows"):
        _columns.array_of_column(pa.chunked_array([rows]), "x")


def test_columns_without_rows():
    pa = pytest.importorskip("pyarrow")
    kind = pa.list_(pa.list_(pa.float32(), 3), 2)
    assert _columns.array_of_column(pa.chunked_array([], kind), "x").shape == (0, 2, 3)
    with pytest.raises(hr.UserError, match="column 'x' is struct<a: int8>, which no input takes"):
        _columns.array_of_column(pa.chunked_array([], pa.struct([("a", pa.int8())])), "x")


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({}, "the batch has no column x; it has none"),
        ({"y": np.zeros((2, 1, 8, 8), np.float32)}, "the batch has no column x; it has y"),
        ({"x": np.zeros((2, 1, 8, 8), np.float32), "y": np.zeros(2)}, "column y is not an input of the artifact"),
        (
            {"x": np.zeros((2, 8, 8), np.float32)},
            r"column 'x' has shape \(2, 8, 8\); input 'x' takes rows of the shape",
        ),
        ({"x": np.zeros((2, 1, 8, 8))}, "column 'x' is float64, and input 'x' is float32"),
        ({"x": np.array([np.zeros(1), None], object)}, "column 'x' has rows of different shapes"),
        ([1, 2], "batch: expected a dict of numpy arrays or a pyarrow.Table, got list"),
    ],
)
def test_batches_that_do_not_fit(artifact, batch, message):
    with pytest.raises(hr.UserError, match=message):
        hray.Predictor(artifact)(batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": {"z": "image"}}, "inputs: the artifact has no z; it has x"),
        ({"outputs": ["z"]}, "outputs: the artifact has no z; it has probabilities"),
        ({"outputs": []}, "outputs: name at least one output"),
        ({"batch": 8}, "batch is 8, and the artifact has a batch of 16"),
        ({"keep": ["probabilities"]}, "the result would have several columns named probabilities"),
    ],
)
def test_options_that_do_not_fit(artifact, options, message):
    with pytest.raises(hr.UserError, match=message):
        hray.Predictor(artifact, **options)


def write_sum(path: Path, x: tuple[int, ...], y: tuple[int, ...]) -> Path:
    """An artifact that adds its inputs x and y."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x), ("y", y))]
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, np.broadcast_shapes(x, y))
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["total"])], "sum", ports, [total])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path.with_suffix(".onnx"))
    hr.compile(path.with_suffix(".onnx"), threads=1, output=path)
    return path


def test_an_artifact_without_a_batch_runs_once_for_each_row(tmp_path):
    path = write_sum(tmp_path / "sum.so", (3, 2), (2,))
    with pytest.raises(hr.UserError, match="do not have one batch as their first dimension"):
        hray.Predictor(path)
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    y = np.array([[0, 10], [100, 0], [0, 0], [5, 5]], np.float32)
    made = hray.Predictor(path, batch=0)({"x": x, "y": y})["total"]
    np.testing.assert_array_equal(made, x + y[:, None])
    with pytest.raises(hr.UserError, match="different numbers of rows: 'x' has 4, 'y' has 3"):
        hray.Predictor(path, batch=0)({"x": x, "y": y[:3]})


def test_several_inputs_and_a_batch(tmp_path):
    path = write_sum(tmp_path / "sum.so", (4, 3), (4, 3))
    x, y = np.arange(18, dtype=np.float32).reshape(6, 3), np.ones((6, 3), np.float32)
    np.testing.assert_array_equal(hray.Predictor(path)({"x": x, "y": y})["total"], x + 1)


def test_an_artifact_without_inputs_is_refused():
    with pytest.raises(hr.UserError, match="the artifact has no inputs"):
        _predictor._batch_of(types.SimpleNamespace(inputs=[], outputs=[]))


def test_a_model_is_not_an_artifact():
    with pytest.raises(hr.UserError, match=r"is a model, which headrace\.compile compiles"):
        hray.artifact_ref(ray_kit.ROOT / "models" / "digits.onnx")


def test_a_model_in_memory_has_no_file(images):
    model = hr.compile(ray_kit.ROOT / "models" / "digits.onnx", shapes={"x": (1, 1, 8, 8)}, threads=1)
    with pytest.raises(hr.UserError, match=r"compile it with output='model\.so'"):
        hray.artifact_ref(model)


def test_a_model_with_a_file_needs_no_ray(artifact, images, expected, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # an import of it fails then
    predict = hray.Predictor(hr.load(artifact))
    np.testing.assert_array_equal(predict({"x": images[:20]})["probabilities"], expected[:20])
    model = hr.compile(ray_kit.ROOT / "models" / "digits.onnx", shapes={"x": (1, 1, 8, 8)}, threads=1)
    with pytest.raises(hr.UserError, match=r"compile it with output='model\.so'"):
        hray.Predictor(model)


class FakeRef(hray.ArtifactRef):
    """An ArtifactRef that counts how often its bytes are fetched."""

    def _fetch(self):
        with COUNTED:
            FETCHES.append(self.sha256)
        return self._bytes


COUNTED, FETCHES = threading.Lock(), []


def test_a_node_fetches_an_artifact_once(artifact, tmp_path, monkeypatch):
    import hashlib

    monkeypatch.setattr(_artifacts.tempfile, "gettempdir", lambda: str(tmp_path))
    data = artifact.read_bytes()
    ref = FakeRef("digits.so", hashlib.sha256(data).hexdigest(), len(data), _bytes=data)
    FETCHES.clear()
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: ref.local_path(), range(16)))
    assert len(paths) == 1
    assert len(FETCHES) == 1
    path = paths.pop()
    assert path.read_bytes() == data
    path.write_bytes(b"cut")
    assert ref.local_path().read_bytes() == data
    assert len(FETCHES) == 2
    assert [entry.suffix for entry in path.parent.iterdir() if entry.suffix == ".part"] == []
    path.parent.chmod(0o777)
    with pytest.raises(hr.UserError, match="can be written by other users"):
        ref.local_path()


def test_bytes_with_another_hash_are_refused(cluster):
    ref = hray.ArtifactRef("digits.so", "0" * 64, 3, _bytes=cluster.put(b"abc"))
    with pytest.raises(hr.UserError, match=r"the bytes of the artifact 'digits\.so' changed on their way"):
        ref.local_path()


@pytest.mark.parametrize("batch_format", ["numpy", "pyarrow"])
def test_map_batches_gives_the_results_of_one_process(cluster, artifact, images, expected, batch_format):
    data = pytest.importorskip("ray.data", reason="Ray Data is not installed (pip install '.[ray]')")
    rows = 2000 if IS_FULL else 300
    context = data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    picked = np.arange(rows) % len(images)
    # Blocks of several sizes: cuts inside the artifact's batch, on its borders and beyond it.
    ends = [*range(0, rows, 55), rows]
    blocks = [images[picked[begin:end]] for begin, end in pairwise(ends)]
    dataset = data.from_numpy(blocks).rename_columns({"data": "x"})
    ref = hray.artifact_ref(artifact)
    made = dataset.map_batches(
        hray.Predictor,
        fn_constructor_args=(ref,),
        batch_size=BATCH * 2 + 3,
        batch_format=batch_format,
        compute=data.ActorPoolStrategy(size=2),
    )
    scores = np.concatenate([batch["probabilities"] for batch in made.iter_batches(batch_format="numpy")])
    np.testing.assert_array_equal(scores, expected[picked])
