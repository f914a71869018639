"""A model as a pipeline of stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from headrace import _arguments, _core, _native, _public
from headrace._core import UserError
from headrace._keywords import suggests_keywords
from headrace.pipeline import _devices

__all__ = ["split"]


@suggests_keywords
def split(
    model: Any,
    output: str | PathLike[str],
    *,
    stages: int = 2,
    threads: int = 1,
    cpus: Sequence[Iterable[int]] | None = None,
    backends: Sequence[Sequence[str]] | None = None,
    devices: Sequence[Any] | None = None,
    memory: int | Sequence[int] | None = None,
    replicas: int = 1,
    isolation: str = "thread",
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    bound: Mapping[str, Any] | None = None,
    weights: str | PathLike[str] | None = None,
    target: Any = None,
    opt_level: int = 3,
    measure: bool = True,
    replans: int = 3,
    max_inflight: int = 16,
) -> dict[str, Any]:
    """Splits a model into stages whose slowest is as fast as possible, and writes the pipeline to a file.

    Each stage is compiled and measured on this machine, the times of ops are corrected by that, and the model is split
    again. `load` starts the pipeline.

    Parameters
    ----------
    model : path or IRModule
        A file (.onnx, .relay), or a Relay program whose parameters are bound
        (`relay.build_module.bind_params_by_name`). Programs with control flow are not split.
    output : path
        The file of the pipeline, such as "halves.so".
    stages : int
        At most so many; there are fewer where more would not be faster.
    threads : int
        Threads of each stage.
    cpus : list of list of int, optional
        The processors of each stage, one or more and each once, which it is measured on; without it, any. Stages may
        share processors.
    backends : list of list of str, optional
        The backends of each stage, by their priority; an empty list is native code. Stages differ in speed then, and
        the split gives each ops that it is fast at. Stages are in the order of the ops, not of this list.
    devices : list of SimulatedDevice, str or None, optional
        The device of each stage, as for `Graph.stage`; None is the CPU. Times on a simulated one are those measured
        here, divided by its speed, and its memory and link bound the split. The file keeps the devices for `load`.
    memory : int or list of int, optional
        The bytes that a stage may take (`memory_bytes` of the result): one number for all stages, or one for each
        place. A split whose compiled stages take more is refused.
    replicas : int
        At most so many of one stage, which take requests in turns. Each takes a place of `stages`.
    isolation : str
        "thread", or "process": each stage in a process of its own, which may crash and is started again.
    shapes, dims, bound, weights, target, opt_level
        As for `headrace.compile`; a target of one kind. The first four are for files.
    measure : bool
        False: times are estimated by the sizes of tensors, and nothing is run.
    replans : int
        How often the model is split again, at most.
    max_inflight : int
        Requests that may be in the pipeline at once; `load` may choose another number.

    Returns
    -------
    dict
        `stages` (name, backend, device, replicas, nodes, seconds, transfer_seconds, and memory_bytes: the weights of
        the compiled stage, each once, its working memory, and the slots of its tensors), `period_seconds` of the
        slowest, its `lower_bound_seconds`, `measured`, `plans` (how many were tried), `predicted_per_second` (requests,
        as a simulation says) and `bytes` of the file.

    Raises
    ------
    UserError
        For a model that cannot be split, a bad option, a file that cannot be written, and an output whose name does not
        end in .so.
    """
    is_file = isinstance(model, (str, PathLike))
    if not is_file and getattr(model, "type_key", "") != "ir.IRModule":
        raise UserError(f"model: expected a path or an IRModule, got {_arguments.kind(model)}")
    for name, given in (("shapes", shapes), ("dims", dims), ("bound", bound), ("weights", weights)):
        if not is_file and given is not None:
            raise UserError(
                f"{name}: is for model files, and the model is an IRModule; give its parameters their types, and bind "
                "values with relay.build_module.bind_params_by_name"
            )
    if _native.is_runtime_alone:
        raise _native.missing("headrace.pipeline.split")
    from headrace.target import chosen_targets  # needs the compiler, and the package's other functions do not

    chosen, beside = chosen_targets(target, "", "")
    if beside:
        raise UserError("target: stages are compiled natively; give one target")
    if _arguments.integer(replans, "replans") < 0:
        raise UserError(f"replans is {replans}; it is 0 or more, and measure=False measures nothing")
    if not 1 <= _arguments.integer(max_inflight, "max_inflight") <= _core.MOST_IN_FLIGHT:
        raise UserError(f"max_inflight is {max_inflight}; it lies from 1 to {_core.MOST_IN_FLIGHT}")
    if isolation not in ("thread", "process"):
        raise UserError(f"isolation is {isolation!r}; it is 'thread' or 'process'")
    report = _core.split_model(
        program=_arguments.path(model, "model") if is_file else model,
        output=_arguments.path(output, "output"),
        stages=_arguments.integer(stages, "stages"),
        threads=_arguments.integer(threads, "threads"),
        cpus=_processors_of(cpus),
        backends=[_arguments.names(one, "backends") for one in (backends or ())],
        devices=[_devices.text_of(device) for device in (devices or ())],
        memory=_bytes_of(memory),
        replicas=_arguments.integer(replicas, "replicas"),
        in_processes=isolation == "process",
        shapes=_arguments.shapes(shapes),
        dims=_arguments.dims(dims),
        bound=_arguments.mapping(bound, "bound", 'bound={"x": array}'),
        weights="" if weights is None else _arguments.path(weights, "weights"),
        target=chosen,
        opt_level=_arguments.integer(opt_level, "opt_level"),
        replans=replans if measure else -1,
        max_inflight=_arguments.integer(max_inflight, "max_inflight"),
    )
    return {**report, "stages": [dict(stage) for stage in report["stages"]]}


def _processors_of(cpus: Sequence[Iterable[int]] | None) -> list[list[int]]:
    """The processors of each stage; none: any for all."""
    if cpus is None:
        return []
    if isinstance(cpus, str) or not isinstance(cpus, Iterable):
        raise UserError(f"cpus: expected a list of processors for each stage, got {_arguments.kind(cpus)}")
    lists = list(cpus)
    if not lists:
        raise UserError("cpus: it is empty; give a list of processors for each stage, or leave it out for any")
    for i, one in enumerate(lists):
        if isinstance(one, str) or not isinstance(one, Iterable):
            raise UserError(f"cpus[{i}]: expected a list of processors' numbers, got {_arguments.kind(one)}")
    return [[_arguments.integer(cpu, f"cpus[{i}]") for cpu in one] for i, one in enumerate(lists)]


def _bytes_of(memory: int | Sequence[int] | None) -> list[int]:
    """The memory of each stage; one number holds for all."""
    if memory is None:
        return []
    if isinstance(memory, str):
        raise UserError(f"memory is {memory!r}; it is a number of bytes, such as 512 << 20, or one for each stage")
    return [_arguments.integer(one, "memory", 64) for one in (memory if isinstance(memory, Sequence) else [memory])]


_public.publish(__name__, "headrace.pipeline")
