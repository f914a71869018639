"""Stages that are given as Relay programs: modules that are compiled, and programs that an executor evaluates."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace import _arguments, compiler, runtime
from headrace._container import ADT
from headrace._core import UserError
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay.transform import InferType


def compile_stage(module: IRModule, stage: str, options: Any, threads: int) -> Any:
    """Compiles the module of a stage, by the function `options.build` or by `headrace.compile`."""
    if options.build is not None:
        if options.backends:
            raise UserError("backends are of modules that hr.compile compiles, and build compiles this one")
        built = options.build(module, options.target, params=options.params, target_host=None, mod_name=stage)
        if built is None or isinstance(built, IRModule):
            raise UserError(f"build gave {_arguments.kind(built)}; it gives what relay.build gives, or a function")
        return built
    if options.params is not None:
        given = _arguments.mapping(options.params, "params", 'params={"w": array}')
        values = {name: _arguments.copied(value, f"parameter '{name}'") for name, value in given.items()}
        names = [param.name_hint for param in module["main"].params]
        if unknown := [name for name in values if name not in names]:
            raise UserError(f"params: the module has no parameter '{unknown[0]}'; it has {', '.join(names) or 'none'}")
        module = module.copy()
        module.update_func("main", api("relay.build_module.BindParamsByName")(module["main"], values))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "stage.so")
        compiler.compile(module, target=options.target, backends=options.backends, threads=threads, output=path)
        return runtime.load_module(path)  # it holds the file, which is deleted


def evaluated_ports(module: IRModule) -> tuple[list[str], int]:
    """Returns the inputs and the number of outputs of a program that `Executor.evaluate` returned."""
    names = [param.name_hint for param in module["main"].params]
    return names, len(_leaves(InferType()(module)["main"].checked_type.ret_type))


def _leaves(type_: Any) -> list[Any]:
    if not isinstance(type_, nodes.TupleType):
        return [type_]
    return [leaf for field in type_.fields for leaf in _leaves(field)]


def in_order(code: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """Returns a function that gives the tensors of nested tuples in order, as a compiled program does."""

    def tensors(value: Any) -> list[Any]:
        is_tuple = isinstance(value, ADT)
        return [tensor for field in value for tensor in tensors(field)] if is_tuple else [value]

    def run(*inputs: Any) -> Any:
        result = code(*inputs)
        return result if outputs == 1 else tuple(tensors(result))

    return run
