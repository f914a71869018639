"""The errors of the pipeline executor. TVM raised RuntimeError, so these are RuntimeErrors and UserErrors at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace import _public
from headrace._core import MissingError, UserError

__all__ = ["PipelineExecutorError", "PipelineExecutorMissingError"]


class PipelineExecutorError(UserError, RuntimeError):
    """A configuration, or a use of a pipeline, that is wrong. The message names the port."""


class PipelineExecutorMissingError(MissingError, RuntimeError):
    """This build of Headrace lacks a part of the pipeline executor."""


@contextmanager
def told_of(what: str) -> Iterator[None]:
    """Raises a UserError of the block as a PipelineExecutorError whose message begins with `what`, once."""
    try:
        yield
    except UserError as error:
        if isinstance(error, RuntimeError):
            raise
        kind = PipelineExecutorMissingError if isinstance(error, MissingError) else PipelineExecutorError
        other = kind(str(error) if str(error).startswith(f"{what}: ") else f"{what}: {error}")
        vars(other).update(vars(error))
        raise other from error


_public.publish(__name__, "headrace.pipeline_executor")
