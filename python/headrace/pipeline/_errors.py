"""Errors of pipelines: requests that fail, and calls that a pipeline does not take."""

from __future__ import annotations

from headrace import _public
from headrace._core import UserError

__all__ = [
    "Cancelled",
    "DeadlineExceeded",
    "Dropped",
    "PipelineBroken",
    "PipelineError",
    "PipelineFull",
    "PipelineNotStarted",
    "PipelineStopped",
    "StageFailed",
    "StageLost",
    "StageTimeout",
    "Stopped",
]


class PipelineError(UserError, RuntimeError):
    """A request failed, or was not taken.

    Attributes
    ----------
    seq : int or None
        The number of the request, in the order of submission; None where it was not taken.
    stage : str
        The stage that failed it; empty: none did.
    backend : str
        The backends of that stage: those that its program was placed on, where the stage was not given another name.
    cause : Exception or None
        What the stage raised; for StageLost a ChildProcessError that says how the process ended, and for StageTimeout a
        TimeoutError.
    """

    seq: int | None = None
    stage: str = ""
    backend: str = ""
    cause: BaseException | None = None


class StageFailed(PipelineError):
    """A stage raised an error for this request; `cause` has it."""


class StageLost(PipelineError):
    """The process of a stage crashed or was killed while it worked on this request; the message says how it ended."""


class StageTimeout(PipelineError):
    """A stage took longer than its time limit for this request, or for one before it."""


class DeadlineExceeded(PipelineError):
    """The request was not done by its deadline."""


class Cancelled(PipelineError):
    """The request was cancelled."""


class Stopped(Cancelled):
    """The pipeline was stopped before the request was done."""


class Dropped(PipelineError):
    """The request was dropped for a newer one, because the pipeline was full."""


class PipelineFull(PipelineError):
    """There was no place for the request in time."""


class PipelineBroken(PipelineError):
    """A stage keeps failing, so requests are refused; `Pipeline.reset` ends that, or a probe that succeeds."""


class PipelineNotStarted(PipelineError):
    """The pipeline is built, and `Pipeline.start` starts it."""


class PipelineStopped(PipelineError):
    """The pipeline is stopped, or is being drained."""


# Exceptions that say how the call of a stage ended which raised none.
_CAUSES = {"StageLost": ChildProcessError, "StageTimeout": TimeoutError}
_KINDS = {kind.__name__: kind for kind in PipelineError.__subclasses__()} | {"Stopped": Stopped}


def refusal(kind: str, message: str) -> PipelineError:
    """The error of a call that was not taken."""
    return _KINDS[kind](message)


def failure(
    kind: str, message: str, seq: int, stage: str, backend: str, cause: BaseException | str | None
) -> PipelineError:
    """The error of a request that failed; its cause is the exception of the stage, or the text of what happened."""
    if cause is None and kind == "StageTimeout":
        cause = f"a call of stage '{stage}' did not return within its time limit"
    if isinstance(cause, str):
        cause = _CAUSES.get(kind, RuntimeError)(cause)
    error = _KINDS[kind](message)
    error.seq, error.stage, error.backend, error.cause = seq, stage, backend, cause
    error.__cause__ = cause
    return error


_public.publish(__name__, "headrace.pipeline")
