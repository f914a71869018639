"""Batch inference over the blocks of a dataset of Ray Data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from headrace import _arguments, _public, compiler
from headrace._core import UserError
from headrace._numpy import np
from headrace.ray import _columns
from headrace.ray._artifacts import ArtifactRef, local_artifact

if TYPE_CHECKING:
    import numpy as np

    from headrace._core import TensorSpec

__all__ = ["Predictor"]


class Predictor:
    """Runs an artifact on the rows of a dataset; a callable class for `ray.data.Dataset.map_batches`.

        ref = headrace.ray.artifact_ref("model.so")
        dataset.map_batches(headrace.ray.Predictor, fn_constructor_args=(ref,), batch_size=256, concurrency=2)

    Each actor loads the artifact once. An artifact has a fixed batch: more rows are cut into several runs, and the last
    run's missing rows are zero, and are cut from its results. Columns are read in place where they are dense. A batch
    is a dict of numpy arrays, or a `pyarrow.Table` with `batch_format="pyarrow"`; the result is of the same kind.

    Parameters
    ----------
    artifact : path, CompiledModel or ArtifactRef
        The artifact. A path must be there on every node; an ArtifactRef is fetched.
    inputs : dict of str to str, optional
        The column of each input whose column has another name: {"x": "image"}.
    outputs : list or dict, optional
        The outputs that the result has; a dict says their columns: {"probabilities": "scores"}. All, without it.
    threads : int
        Threads of each run; 0 is as many as the artifact says.
    batch : int, optional
        0: the artifact's inputs have no batch dimension, and each row is a run of its own. Without it, the first
        dimension of all inputs and outputs is the batch.
    keep : list of str
        Columns that pass to the result unchanged, such as an identifier.

    Raises
    ------
    UserError
        For an artifact whose inputs have different first dimensions, and for names that it does not have.
    """

    def __init__(
        self,
        artifact: str | PathLike[str] | compiler.CompiledModel | ArtifactRef,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Sequence[str] | Mapping[str, str] | None = None,
        threads: int = 1,
        batch: int | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        path, program = local_artifact(artifact)
        self._model = compiler.load(path, program=program, threads=_arguments.integer(threads, "threads"))
        self._has_batch = batch is None or _arguments.integer(batch, "batch") != 0
        self._rows_a_run = _batch_of(self._model) if self._has_batch else 1
        if batch is not None and batch not in (0, self._rows_a_run):
            raise UserError(f"batch is {batch}, and the artifact has a batch of {self._rows_a_run}; leave batch= out")
        self._columns = _column_names(self._model.inputs, inputs, "inputs")
        self._outputs = _output_names(self._model.outputs, outputs)
        self._keep = _arguments.names(keep, "keep")
        results = list(self._outputs.values()) + self._keep
        twice = sorted({name for name in results if results.count(name) > 1})
        if twice:
            raise UserError(f"the result would have several columns named {', '.join(twice)}; rename them by outputs=")

    def __call__(self, batch: Any) -> Any:
        """Returns the outputs for the rows of a batch: one column for each output, and those of `keep`.

        Raises
        ------
        UserError
            For a column that is missing or unknown, or has another shape or dtype; the message names it.
        """
        is_table = _columns.is_table(batch)
        if not is_table and not isinstance(batch, Mapping):
            raise UserError(
                f"batch: expected a dict of numpy arrays or a pyarrow.Table, got {_arguments.kind(batch)}; call "
                "map_batches with batch_format='numpy' or 'pyarrow'"
            )
        self._check_names(list(batch.column_names if is_table else batch))
        arrays = [self._array_of(spec, batch, is_table) for spec in self._model.inputs]
        rows = self._row_count(arrays)
        made = self._run(arrays, rows)
        if is_table:
            return _columns.table_of(made, {name: batch.column(name) for name in self._keep})
        return {**made, **{name: batch[name] for name in self._keep}}

    def _check_names(self, given: list[str]) -> None:
        wanted = list(self._columns.values())
        missing = [name for name in [*wanted, *self._keep] if name not in given]
        if missing:
            raise UserError(f"the batch has no column {', '.join(missing)}; it has {', '.join(given) or 'none'}")
        unknown = [name for name in given if name not in wanted and name not in self._keep]
        if unknown:
            raise UserError(
                f"column {', '.join(unknown)} is not an input of the artifact ({', '.join(wanted)}); drop it, or name "
                "it in keep= if the result needs it"
            )

    def _array_of(self, spec: TensorSpec, batch: Any, is_table: bool) -> np.ndarray:
        column = self._columns[spec.name]
        array = _columns.array_of_column(batch.column(column), column) if is_table else np.asarray(batch[column])
        shape = tuple(spec.shape[1:] if self._has_batch else spec.shape)
        if array.ndim == 0 or array.shape[1:] != shape or array.dtype == object:
            got = "rows of different shapes" if array.dtype == object else f"shape {array.shape}"
            raise UserError(f"column '{column}' has {got}; input '{spec.name}' takes rows of the shape {shape}")
        if str(array.dtype) != spec.dtype:
            raise UserError(
                f"column '{column}' is {array.dtype}, and input '{spec.name}' is {spec.dtype}; convert the column by "
                f"astype('{spec.dtype}') in a map_batches before this one"
            )
        return array

    def _row_count(self, arrays: Sequence[np.ndarray]) -> int:
        counts = {column: len(array) for column, array in zip(self._columns.values(), arrays, strict=True)}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
            raise UserError(f"the columns have different numbers of rows: {listed}")
        return len(arrays[0]) if arrays else 0

    def _run(self, arrays: Sequence[np.ndarray], rows: int) -> dict[str, np.ndarray]:
        step = self._rows_a_run
        specs = self._model.outputs
        shapes = [tuple(spec.shape[1:] if self._has_batch else spec.shape) for spec in specs]
        made = [np.empty((rows, *shape), spec.dtype) for spec, shape in zip(specs, shapes, strict=True)]
        for begin in range(0, rows, step):
            count = min(step, rows - begin)
            inputs = [self._rows_of(array, begin, count) for array in arrays]
            places = [self._place(out, begin) if count == step else None for out in made]
            for out, place, result in zip(made, places, self._model._run_into(inputs, places), strict=True):
                value = np.from_dlpack(result)
                if place is None or not np.shares_memory(value, place):
                    out[begin : begin + count] = value[:count] if self._has_batch else value
        return {
            self._outputs[spec.name]: out for spec, out in zip(specs, made, strict=True) if spec.name in self._outputs
        }

    def _place(self, out: np.ndarray, begin: int) -> np.ndarray:
        """The memory of one run's results."""
        return out[begin : begin + self._rows_a_run] if self._has_batch else out[begin]

    def _rows_of(self, array: np.ndarray, begin: int, count: int) -> np.ndarray:
        if not self._has_batch:
            return np.ascontiguousarray(array[begin])
        if count == self._rows_a_run:
            return np.ascontiguousarray(array[begin : begin + count])
        padded = np.zeros((self._rows_a_run, *array.shape[1:]), array.dtype)
        padded[:count] = array[begin : begin + count]
        return padded

    def __repr__(self) -> str:
        return f"Predictor({self._model!r})"


def _batch_of(model: compiler.CompiledModel) -> int:
    """The first dimension that all inputs and outputs share."""
    if not model.inputs:
        raise UserError("the artifact has no inputs, so no column could feed it")
    firsts = {spec.name: tuple(spec.shape)[:1] for spec in [*model.inputs, *model.outputs]}
    if len(set(firsts.values())) != 1 or () in firsts.values():
        listed = ", ".join(f"'{spec.name}' {tuple(spec.shape)}" for spec in [*model.inputs, *model.outputs])
        raise UserError(
            f"the inputs and outputs do not have one batch as their first dimension: {listed}; batch=0 runs the "
            "artifact once for each row"
        )
    return int(next(iter(firsts.values()))[0])


def _column_names(specs: Sequence[TensorSpec], given: Mapping[str, str] | None, what: str) -> dict[str, str]:
    """The column of each input or output."""
    chosen = _arguments.mapping(given, what, f'{what}={{"x": "image"}}')
    names = [spec.name for spec in specs]
    unknown = [str(name) for name in chosen if name not in names]
    if unknown:
        raise UserError(f"{what}: the artifact has no {', '.join(unknown)}; it has {', '.join(names)}")
    return {name: _arguments.text(chosen.get(name, name), f"{what}['{name}']") for name in names}


def _output_names(specs: Sequence[TensorSpec], given: Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
    if given is None:
        return {spec.name: spec.name for spec in specs}
    chosen = given if isinstance(given, Mapping) else {name: name for name in _arguments.names(given, "outputs")}
    if not chosen:
        raise UserError("outputs: name at least one output")
    columns = _column_names(specs, chosen, "outputs")
    return {name: columns[name] for name in chosen}


_public.publish(__name__, "headrace.ray")
