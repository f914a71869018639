"""Where users of TVM look for names that are elsewhere here, and for names that only their programs use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _node, _public

# By module: its own modules, and those of them that `import *` does not take.
_MODULES = {
    "headrace.contrib": "cc graph_executor pipeline_executor pipeline_executor_build utils",
    "headrace.relay": (
        "adt analysis annotation backend build_module dataflow_pattern expr frontend function loops op param_dict "
        "prelude scope_builder testing transform ty"
    ),
    "headrace.relay.backend": "executor interpreter runtime",
}
_NETWORKS = "dcgan densenet dqn inception_v3 init layers lstm mlp mobilenet resnet resnet_3d squeezenet synthetic vgg"
_UNLISTED = {
    "headrace.relay": "expr_functor extern image memory nn qnn random type_functor vision",
    "headrace.relay.testing": f"nat temp_op_attr {_NETWORKS}",
}
# By module: the module whose `find(place, name)` gives what has no row below, and whose `names()` says for which names.
# Where it gives None, the package around the module is asked.
_FINDERS = {"headrace.relay": "headrace._compat.relay_names", "headrace.relay.op": "headrace._compat.op_names"}
_PREPARED = ["headrace.relay.op"]  # those whose finder has a `prepare(place)`, which is called before names are found
_RUN = "headrace._compat.relay_build"

_PIPELINE = "headrace._compat.pipeline"
_PIPELINE_EXECUTOR = {
    f"{_PIPELINE}.config": "PipelineConfig",
    f"{_PIPELINE}.errors": "PipelineExecutorError PipelineExecutorMissingError",
    f"{_PIPELINE}.factory": "PipelineExecutorFactoryModule build pipeline_executor_enabled",
    f"{_PIPELINE}.module": "PipelineModule create",
    f"{_PIPELINE}.ports": "Binding BindingList",
    f"{_PIPELINE}.stage": "ModuleWrapper",
}

# By module: the modules that have the names, and the names; "*" for the whole `__all__`.
_NAMES = {
    "headrace.container": {"headrace._container": "Array Map"},
    "headrace.contrib": {},
    "headrace.contrib.cc": {"headrace.cc": "*"},
    "headrace.contrib.graph_executor": {"headrace._compat.graph_executor": "*"},
    "headrace.contrib.pipeline_executor": {"headrace.pipeline_executor": " ".join(_PIPELINE_EXECUTOR.values())},
    "headrace.contrib.pipeline_executor_build": {
        f"{_PIPELINE}.build_names": "export_library pipeline_executor_build_enabled",
        f"{_PIPELINE}.config": "PipelineConfig",
        f"{_PIPELINE}.factory": "PipelineExecutorFactoryModule build",
    },
    "headrace.contrib.utils": {"headrace._compat.temporary_folders": "*"},
    "headrace.graph_executor": {"headrace._compat.graph_executor": "*"},
    "headrace.ir.container": {"headrace._container": "Array Map"},
    "headrace.ir.instrument": {"headrace.instrument": "*"},
    "headrace.ir.supply": {"headrace._compat.supply": "*"},
    "headrace.ir.transform": {"headrace.transform": "*"},
    "headrace.parser": {"headrace.relay._text": "fromtext parse parse_expr"},
    "headrace.pipeline_executor": _PIPELINE_EXECUTOR,
    "headrace.support": {"headrace._compat.build_options": "*"},
    "headrace.relay": {
        "headrace._operands": "TupleWrapper const",
        "headrace._params": "load_param_dict save_param_dict",
        "headrace.relay._build_ir": "ScopeBuilder bind var",
        "headrace.relay._classes": (
            "Any Attrs Expr IRModule Op PrimType RelayExpr ShapeVar SourceName Span Type TypeConstraint TypeKind "
            "scalar_type "
            + " ".join(key.removeprefix("relay.") for key in _node.all_keys("relay") if key != "relay.Expr")
        ),
        "headrace.relay._op_adapters": (
            "arange full full_like gather_nd logsumexp matrix_set_diag mean_variance reverse_reshape std strided_set "
            "unique variance"
        ),
        _RUN: "GraphExecutorFactoryModule bind_params_by_name build create_executor optimize",
        "headrace.relay._text": "astext fromtext parse parse_expr",
        "headrace._compat.with_fields": (
            "CallWithFields ConstantWithFields FunctionWithFields IfWithFields LetWithFields RefCreateWithFields "
            "RefReadWithFields RefWriteWithFields TupleGetItemWithFields TupleWithFields VarWithFields"
        ),
        "headrace.relay.expr_functor": "ExprFunctor ExprMutator ExprVisitor",
        "headrace.relay.type_functor": "TypeFunctor TypeMutator TypeVisitor",
    },
    "headrace.relay.adt": {
        "headrace.relay._classes": (
            "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard TypeData"
        )
    },
    "headrace.relay.backend": {"headrace._compat.executor_choices": "Executor Runtime"},
    "headrace.relay.backend.executor": {"headrace._compat.executor_choices": "Executor"},
    "headrace.relay.backend.runtime": {"headrace._compat.executor_choices": "Runtime"},
    "headrace.relay.build_module": {
        _RUN: "GraphExecutorFactoryModule bind_params_by_name build create_executor optimize"
    },
    "headrace.relay.expr": {
        "headrace._operands": "TupleWrapper const",
        "headrace.relay._build_ir": "bind var",
        "headrace.relay._classes": (
            "Call Constant Expr Function GlobalVar If Let RefCreate RefRead RefWrite RelayExpr Tuple TupleGetItem Var"
        ),
        "headrace._compat.with_fields": (
            "CallWithFields ConstantWithFields IfWithFields LetWithFields RefCreateWithFields RefReadWithFields "
            "RefWriteWithFields TupleGetItemWithFields TupleWithFields VarWithFields"
        ),
    },
    "headrace.relay.function": {
        "headrace.relay._classes": "Function",
        "headrace._compat.with_fields": "FunctionWithFields",
    },
    "headrace.relay.loops": {"headrace._compat.while_loops": "*"},
    "headrace.relay.op": {
        "headrace._compat.op_names": "algorithm contrib reduce tensor transform",
        "headrace._compat.watched_values": "debug",
        "headrace.relay._op_registration": (
            "MIXED_PRECISION_ALWAYS MIXED_PRECISION_FOLLOW MIXED_PRECISION_NEVER Op OpPattern get register "
            "register_alter_op_layout register_bounded_form register_commuting_factors register_compute "
            "register_convert_op_layout register_gradient register_keep_layout register_keeps_elements "
            "register_legalize register_mixed_precision_conversion register_op_attr register_packed_func "
            "register_pattern register_prim_func register_stateful register_treats_apart register_work "
            "reset_legalize why_opaque"
        ),
    },
    "headrace.relay.param_dict": {"headrace._params": "load_param_dict save_param_dict"},
    "headrace.relay.prelude": {"headrace._compat.prelude": "*"},
    "headrace.relay.scope_builder": {"headrace.relay._build_ir": "ScopeBuilder"},
    "headrace.relay.testing": {"headrace._compat.relay_testing": "*"},
    **{
        f"headrace.relay.testing.{network}": {f"headrace._compat.networks.{network}": "*"}
        for network in _NETWORKS.split()
    },
    "headrace.relay.testing.nat": {"headrace._compat.natural_numbers": "*"},
    "headrace.relay.testing.temp_op_attr": {"headrace._compat.temporary_op_attr": "*"},
    "headrace.relay.ty": {
        "headrace.relay._classes": (
            "Any FuncType GlobalTypeVar IncompleteType RefType ShapeVar TensorType TupleType Type TypeCall "
            "TypeConstraint TypeKind TypeRelation TypeVar scalar_type"
        )
    },
    "headrace.runtime.container": {"headrace._container": "ADT Array Map ShapeTuple String tuple_object"},
    "headrace.runtime.module": {
        "headrace._core": "Module",
        "headrace._timing": "BenchmarkResult",
        "headrace.runtime": "load_module system_lib",
    },
    "headrace.te": {"headrace.tir": "*"},
    "headrace.testing": {"headrace._compat.testing": "*"},
}


def _finder(module: str) -> dict[str, Callable[..., Any]]:
    """The functions of a row of `_FINDERS`, as `facade` takes them. They import its module when they are called."""

    def find(name: str) -> Any:
        found = importlib.import_module(_FINDERS[module]).find(sys.modules[module], name)
        return getattr(importlib.import_module(module.rpartition(".")[0]), name) if found is None else found

    def more() -> Iterable[str]:
        return importlib.import_module(_FINDERS[module]).names()

    return {"find": find, "more": more}


def show(module: str) -> list[str]:
    """Lets a module show what the tables say.

    Parameters
    ----------
    module : str
        The module, which has nothing else.

    Returns
    -------
    list of str
        Its `__all__`.
    """
    names = {
        home: " ".join(importlib.import_module(home).__all__) if text == "*" else text
        for home, text in _NAMES[module].items()
    }
    if module in _PREPARED:
        importlib.import_module(_FINDERS[module]).prepare(sys.modules[module])
    finder = _finder(module) if module in _FINDERS else {}
    shown = _public.facade(module, names, _MODULES.get(module, ""), _UNLISTED.get(module, ""), **finder)
    _public.settle(module)
    return shown
