"""Where users of TVM look for names that are elsewhere here, and for names that only their programs use."""

from __future__ import annotations

import importlib

from headrace import _public

# By module: its own modules, and those of them that `import *` does not take.
_MODULES = {
    "headrace.contrib": "cc graph_executor pipeline_executor pipeline_executor_build utils",
    "headrace.relay.backend": "executor interpreter runtime",
}
_NETWORKS = "dcgan densenet dqn inception_v3 init layers lstm mlp mobilenet resnet resnet_3d squeezenet synthetic vgg"
_UNLISTED = {"headrace.relay.testing": f"nat temp_op_attr {_NETWORKS}"}

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
    "headrace.contrib": {},
    "headrace.contrib.cc": {"headrace.cc": "*"},
    "headrace.contrib.graph_executor": {"headrace.graph_executor": "*"},
    "headrace.contrib.pipeline_executor": {"headrace.pipeline_executor": " ".join(_PIPELINE_EXECUTOR.values())},
    "headrace.contrib.pipeline_executor_build": {
        f"{_PIPELINE}.build_names": "export_library pipeline_executor_build_enabled",
        f"{_PIPELINE}.config": "PipelineConfig",
        f"{_PIPELINE}.factory": "PipelineExecutorFactoryModule build",
    },
    "headrace.contrib.utils": {"headrace._compat.temporary_folders": "*"},
    "headrace.ir.container": {"headrace._container": "Array Map"},
    "headrace.ir.instrument": {"headrace.instrument": "*"},
    "headrace.ir.supply": {"headrace._compat.supply": "*"},
    "headrace.ir.transform": {"headrace.transform": "*"},
    "headrace.parser": {"headrace.relay._text": "fromtext parse parse_expr"},
    "headrace.pipeline_executor": _PIPELINE_EXECUTOR,
    "headrace.support": {"headrace._compat.build_options": "*"},
    "headrace.relay.adt": {
        "headrace.relay._classes": (
            "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard TypeData"
        )
    },
    "headrace.relay.backend": {"headrace.relay._build_options": "Executor Runtime"},
    "headrace.relay.backend.executor": {"headrace.relay._build_options": "Executor"},
    "headrace.relay.backend.runtime": {"headrace.relay._build_options": "Runtime"},
    "headrace.relay.build_module": {
        "headrace.relay._run": "GraphExecutorFactoryModule bind_params_by_name build create_executor optimize"
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
    "headrace.relay.param_dict": {"headrace._params": "load_param_dict save_param_dict"},
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
    "headrace.te": {"headrace.tir": "*"},
    "headrace.testing": {"headrace._compat.testing": "*"},
}


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
    shown = _public.facade(module, names, _MODULES.get(module, ""), _UNLISTED.get(module, ""))
    _public.settle(module)
    return shown
