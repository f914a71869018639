"""Pipelines: stages that work on a stream of requests at the same time.

    with hr.pipeline.chain([preprocess, "detect.so", postprocess], max_inflight=16) as pipe:
        for boxes in pipe.map(frames):
            ...

`Graph` joins stages to any graph without circles. `Pipeline.submit` gives a ticket for each request, to wait for, to
await or to cancel. A request that fails raises PipelineError from its ticket, and touches no other.
`Pipeline.save` writes one file, which `load` opens; `split` makes one of a model.
"""

from __future__ import annotations

from headrace import _public
from headrace.pipeline._devices import SimulatedDevice
from headrace.pipeline._errors import (
    Cancelled,
    DeadlineExceeded,
    Dropped,
    PipelineBroken,
    PipelineError,
    PipelineFull,
    PipelineNotStarted,
    PipelineStopped,
    StageFailed,
    StageLost,
    StageTimeout,
    Stopped,
)
from headrace.pipeline._graph import Graph, PortError, Stage, StageHandle, chain, load
from headrace.pipeline._running import Pipeline, Ticket, Trace, as_completed, format_metrics
from headrace.pipeline._split import split

__all__ = [
    "Cancelled",
    "DeadlineExceeded",
    "Dropped",
    "Graph",
    "Pipeline",
    "PipelineBroken",
    "PipelineError",
    "PipelineFull",
    "PipelineNotStarted",
    "PipelineStopped",
    "PortError",
    "SimulatedDevice",
    "Stage",
    "StageFailed",
    "StageHandle",
    "StageLost",
    "StageTimeout",
    "Stopped",
    "Ticket",
    "Trace",
    "as_completed",
    "chain",
    "format_metrics",
    "load",
    "split",
]

_public.settle(__name__)
