"""Callables that replace a graph of torch.compile: they run compiled models, or the graph itself."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.torch._exporting import Refused, compile_module, positions_of
from headrace.torch._graph import Constant, check_graph, freeze, op_count, weight_positions
from headrace.torch._package import FallbackWarning, torch_package

__all__: list[str] = []

# Models of one graph, as InferenceSession keeps of one file.
_KEPT_MODELS = 8
# Each change of a weight costs a compile. A weight that changes a third time within few calls is state of the module,
# and becomes an input. One that is trained between evaluations stays a constant.
_CHANGES_OF_A_WEIGHT = 2
_FEW_CALLS = 16


@dataclass(frozen=True)
class _Weight:
    """A constant of a model: the argument that it was, and the state of its data."""

    position: int
    tensor: weakref.ref
    version: int
    address: int

    def is_same(self, tensor: Any) -> bool:
        """Whether an argument is the tensor, with whatever data."""
        return self.tensor() is tensor

    def is_current(self, tensor: Any) -> bool:
        """Whether an argument is the tensor, with the data that was compiled."""
        return self.tensor() is tensor and self.version == tensor._version and self.address == tensor.data_ptr()


@dataclass
class _Entry:
    """A compiled model, and the calls that it is for."""

    sizes: tuple[Any, ...]
    weights: tuple[_Weight, ...]
    run: Callable[[Sequence[Any]], Any]
    calls: int = 0  # about so many, since threads count without a lock

    def fits(self, sizes: tuple[Any, ...], values: Sequence[Any]) -> bool:
        """Whether the model is for these arguments."""
        return self.sizes == sizes and all(weight.is_current(values[weight.position]) for weight in self.weights)


class Region:
    """A graph of torch.compile, called with its arguments.

    The graph is compiled in the first call, and again for other sizes of its inputs or for weights that changed, up to
    eight models at a time. Threads may share a region. What cannot be compiled runs in PyTorch, after a warning.
    """

    def __init__(self, module: Any, example_inputs: Sequence[Any], options: Mapping[str, Any]) -> None:
        torch = torch_package()
        self._module = module
        self._options = options
        self._held = [*module.parameters(), *module.buffers()]  # constants wherever they are part of the graph
        self._weights = weight_positions(example_inputs)
        self._numbers = [i for i, value in enumerate(example_inputs) if not isinstance(value, torch.Tensor)]
        self._lock = threading.RLock()
        self._entries: tuple[_Entry, ...] = ()  # replaced as a whole, so that calls read it without the lock
        self._changes: Counter[int] = Counter()
        self._is_refused = op_count(module) == 0
        try:
            check_graph(module, example_inputs)
            if any(tensor.is_inference() for tensor in self._held):
                raise Refused("it holds inference tensors, whose changes PyTorch does not count")
        except Refused as refused:
            self._refuse(str(refused))

    def __call__(self, *args: Any) -> Any:
        """Returns what the graph gives for these arguments."""
        if self._is_refused:
            return self._module(*args)
        values = (*args, *self._held)
        sizes = self._sizes_of(args)
        entry = self._find(sizes, values) or self._make(sizes, values)
        if entry is None:
            return self._module(*args)
        entry.calls += 1
        return entry.run(args)

    def _sizes_of(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The key of the shapes in a call; empty for a graph without symbolic sizes."""
        if not self._numbers:
            return ()
        constant = {*self._numbers, *self._weights}
        shapes = [tuple(arg.shape) for i, arg in enumerate(args) if i not in constant]
        return (*(args[i] for i in self._numbers), *shapes)

    def _find(self, sizes: tuple[Any, ...], values: Sequence[Any]) -> _Entry | None:
        return next((entry for entry in self._entries if entry.fits(sizes, values)), None)

    def _make(self, sizes: tuple[Any, ...], values: Sequence[Any]) -> _Entry | None:
        """Compiles for these arguments, unless another thread did; None if PyTorch has to run them."""
        with self._lock:
            found = self._find(sizes, values)
            if found is not None or self._is_refused:
                return found
            try:
                self._drop_stale(values)
                if len(self._entries) >= _KEPT_MODELS:
                    self._warn(f"it keeps {_KEPT_MODELS} compiled models, for other sizes or weights; pad its inputs")
                    return None
                entry = self._compile(sizes, values)
            except Refused as refused:
                self._refuse(str(refused))
                return None
            self._entries = (entry, *self._entries)
            return entry

    def _drop_stale(self, values: Sequence[Any]) -> None:
        """Forgets the models whose weights are gone or have changed; weights that go on changing become inputs."""
        changed: set[int] = set()
        kept = []
        for entry in self._entries:
            stale = {
                weight.position
                for weight in entry.weights
                if weight.is_same(values[weight.position]) and not weight.is_current(values[weight.position])
            }
            changed |= stale if entry.calls <= _FEW_CALLS else set()
            if not stale and all(weight.tensor() is not None for weight in entry.weights):
                kept.append(entry)
        self._entries = tuple(kept)
        self._changes.update(changed)
        state = {i for i in changed if self._changes[i] > _CHANGES_OF_A_WEIGHT}
        self._weights = [i for i in self._weights if i not in state]
        if any(i >= len(values) - len(self._held) for i in state):
            raise Refused("weights in it go on changing between calls")

    def _compile(self, sizes: tuple[Any, ...], values: Sequence[Any]) -> _Entry:
        args = values[: len(values) - len(self._held)]
        positions = [*self._weights, *range(len(args), len(values))]
        # Taken before the export reads the data, so that a change meanwhile makes the entry stale.
        weights = tuple(_Weight(i, weakref.ref(values[i]), values[i]._version, values[i].data_ptr()) for i in positions)
        frozen = freeze(self._module, args, self._weights)
        given = tuple(_dense(args[i]) for i in frozen.inputs)
        model, names = compile_module(frozen.module, given, {}, None, lambda _: self._options)
        order = [frozen.inputs[i] for i in positions_of(model.inputs, names)]
        from_dlpack = torch_package().from_dlpack
        places, is_tuple = frozen.outputs, frozen.is_tuple

        def run(args: Sequence[Any]) -> Any:
            results = [from_dlpack(result) for result in model.run([_dense(args[i]) for i in order])]
            given = tuple(place.value if isinstance(place, Constant) else results[place] for place in places)
            return given if is_tuple else given[0]

        return _Entry(sizes, weights, run)

    def _refuse(self, reason: str) -> None:
        """Leaves the graph to PyTorch from now on."""
        self._is_refused = True
        self._entries = ()
        self._warn(reason)

    def _warn(self, reason: str) -> None:
        """Warns that PyTorch runs the graph; the filters of `warnings` show the same text once."""
        count = op_count(self._module)
        warnings.warn(
            f"headrace: PyTorch runs a graph of {count} op{'' if count == 1 else 's'} itself: {reason}",
            FallbackWarning,
            stacklevel=2,
        )


def _dense(tensor: Any) -> Any:
    """The tensor for DLPack: without gradients, and dense."""
    tensor = tensor.detach()
    if tensor.is_neg():  # a view whose numbers are to be negated when they are read
        tensor = tensor.resolve_neg()
    return tensor.contiguous()
