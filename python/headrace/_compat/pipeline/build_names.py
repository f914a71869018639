"""The functions that TVM's `contrib.pipeline_executor_build` has beside those of `pipeline_executor`."""

from __future__ import annotations

from typing import Any

from headrace import _arguments, _public
from headrace._compat.pipeline import adapter
from headrace._compat.pipeline.errors import PipelineExecutorError
from headrace._compat.pipeline.factory import PipelineExecutorFactoryModule

__all__ = ["export_library", "pipeline_executor_build_enabled"]


def pipeline_executor_build_enabled() -> bool:
    """Whether this build of Headrace runs pipelines; `build` compiles them always.

    Returns
    -------
    bool
    """
    return adapter.is_available()


def export_library(factory: PipelineExecutorFactoryModule, directory_path: Any) -> str:
    """Writes a pipeline, as `factory.export_library(directory_path)` does.

    Parameters
    ----------
    factory : PipelineExecutorFactoryModule
        What `build` gives.
    directory_path : path
        The folder.

    Returns
    -------
    str
        The name of the file to load.
    """
    if not isinstance(factory, PipelineExecutorFactoryModule):
        raise PipelineExecutorError(
            f"export_library: factory: expected what build(cfg) gives, got {_arguments.kind(factory)}"
        )
    return factory.export_library(directory_path)


_public.publish(__name__, "headrace.contrib.pipeline_executor_build")
