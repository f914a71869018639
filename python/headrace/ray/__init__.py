"""Inference on Ray: datasets, and pipelines whose stages are actors on several machines.

    ref = headrace.ray.artifact_ref("model.so")
    dataset.map_batches(headrace.ray.Predictor, fn_constructor_args=(ref,), batch_size=256, concurrency=2)

Ray is an optional package (`pip install '.[ray]'`), which is imported when it is first needed.
"""

from __future__ import annotations

from headrace import _public
from headrace.ray._artifacts import ArtifactRef, artifact_ref
from headrace.ray._pipeline import Pipeline
from headrace.ray._predictor import Predictor
from headrace.ray._tickets import Ticket

__all__ = ["ArtifactRef", "Pipeline", "Predictor", "Ticket", "artifact_ref"]

_public.settle(__name__)
