"""The rules that a whole configuration keeps before anything is compiled: `build` refuses what breaks one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace import _arguments, _core
from headrace._compat.pipeline import adapter, describe
from headrace._compat.pipeline.config import PipelineConfig
from headrace._compat.pipeline.errors import PipelineExecutorError, told_of
from headrace._compat.pipeline.ports import Binding
from headrace._compat.pipeline.stage import ModuleWrapper
from headrace._core import Device, UserError


def check_complete(config: PipelineConfig) -> None:
    """Raises PipelineExecutorError, which tells of every broken rule, when a pipeline cannot be made of it.

    Warns of parameters that no module takes: `relay.build` ignores those, as TVM does.
    """
    problems = list(_problems(config))
    if problems:
        head = f"the configuration has {len(problems)} problems: " if len(problems) > 1 else ""
        raise PipelineExecutorError(f"build: {head}{'; '.join(problems)}")
    for stage in (stage for stage in config.mod_wrapper.values() if stage.build_func is None):
        inputs = stage.port_names("input")
        unused = [str(name) for name in _arguments.entries(stage.params, "params") if str(name) not in inputs]
        if unused:
            warnings.warn(
                f"{stage.name}.params has {', '.join(unused)}, which the module does not take; its inputs are "
                f"{', '.join(inputs)}",
                UserWarning,
                stacklevel=_core.caller_level(),
            )


def _problems(config: PipelineConfig) -> Iterator[str]:
    stages = list(config.mod_wrapper.values())
    if not stages:
        yield "the configuration is empty; connect inputs and outputs of modules, as cfg[mod]['output'][0].connect does"
        return
    for stage in stages:
        yield from _problems_of_settings(stage)
        for name in stage.port_names("input"):
            yield from _problems_of_input(stage, name)
    yield from _problems_of_outputs(config)
    yield from _problems_of_pipeline_inputs(config)
    yield from _problems_of_groups(config)


def _problems_of_settings(stage: ModuleWrapper) -> Iterator[str]:
    if stage.is_outdated():
        yield f"the inputs or outputs of {stage.name}'s module were changed after cfg[mod]; make a new PipelineConfig"
    checks = {
        "params": _arguments.entries,
        "cpu_affinity": cpus_of,
        "dev": _check_device,
        "build_func": _check_function,
    }
    for setting, check in checks.items():
        try:
            check(getattr(stage, setting), f"{stage.name}.{setting}")
        except UserError as error:
            yield str(error)


def _check_function(value: Any, what: str) -> None:
    if value is not None and not callable(value):
        raise PipelineExecutorError(f"{what}: expected a function like relay.build, got {_arguments.kind(value)}")


def _check_device(value: Any, what: str) -> None:
    if value is None:
        return
    if adapter.is_simulated(value):
        return
    if not isinstance(value, Device):
        raise PipelineExecutorError(f"{what}: expected a device, as headrace.cpu(0) is, got {_arguments.kind(value)}")
    _arguments.present(value, what)


def cpus_of(value: Any, what: str) -> list[int]:
    """The processors of `cpu_affinity`: "0,1", a list of numbers, or "" and None for any.

    Parameters
    ----------
    value : str or iterable of int
        The setting.
    what : str
        Its name, for messages.

    Returns
    -------
    list of int
    """
    if value is None or value == "":
        return []
    words = value.split(",") if isinstance(value, str) else value
    if isinstance(words, Iterable):
        with told_of(what):
            numbers = [_number_of(word, f"{what}[{i}]") for i, word in enumerate(words)]
        if all(number >= 0 for number in numbers):
            return list(dict.fromkeys(numbers))
    raise PipelineExecutorError(f'{what}: expected numbers of processors, as "0,1", got {value!r}')


def _number_of(word: Any, what: str) -> int:
    if not isinstance(word, str):
        return _arguments.integer(word, what)
    digits = word.strip()
    return int(digits) if digits.isascii() and digits.isdecimal() else -1


def _problems_of_input(stage: ModuleWrapper, name: str) -> Iterator[str]:
    port = stage["input"].bindings.get(name)
    sources = [source.describe() for source in port.parents] if port else []
    if isinstance(stage.params, Mapping) and name in stage.params:
        sources.append(f"{stage.name}.params")
    if len(sources) > 1:
        yield f"{stage.name}.{name} has {len(sources)} sources: {', '.join(sources)}; keep one"
    if not sources and not stage["param"].parents:
        yield (
            f"{stage.name}.{name} has no source; connect an output of a module or cfg['input'][NAME] to it, or give "
            "its value in cfg[mod].params"
        )


def _problems_of_outputs(config: PipelineConfig) -> Iterator[str]:
    outputs = describe.pipeline_outputs(config._edges)
    if not outputs:
        yield "the pipeline has no output; connect an output of a module to cfg['output'][0]"
    for port, sources in outputs:
        if len(sources) > 1:
            names = " and ".join(source.describe() for source in sources)
            yield f"output({port.name}) of the pipeline is bound {len(sources)} times, to {names}; keep one"
    numbers = [int(port.name) for port, _ in outputs]
    for wanted in range(len(numbers)):
        if numbers[wanted] != wanted:
            yield f"the outputs of the pipeline are numbered from 0 on, and output({wanted}) is not connected"
            return


def _problems_of_pipeline_inputs(config: PipelineConfig) -> Iterator[str]:
    for port, consumers in describe.by_source(config._edges, "input", False):
        first = consumers[0]
        for other in consumers[1:]:
            if other.data_type != first.data_type:
                yield (
                    f"{port.describe()} feeds inputs of different types: {_typed(first)} and {_typed(other)}; "
                    "give each an input of the pipeline"
                )


def _problems_of_groups(config: PipelineConfig) -> Iterator[str]:
    for port, params in describe.by_source(config._edges, "param", False):
        stages = [param.io_owner for param in params]
        if len(stages) > 1:
            names = ", ".join(stage.name for stage in stages)
            yield f"{port.describe()} is connected to {len(stages)} modules: {names}; give each a group of its own"


def _typed(port: Binding) -> str:
    return f"{port.describe()} is {port.data_type}"
