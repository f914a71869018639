"""Mistakes of newcomers to pipelines: each is an error at once, which names the place and the remedy."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")

MODEL = Path(__file__).parents[2] / "models" / "digits.onnx"
IMAGE = np.zeros((1, 1, 8, 8), "float32")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    """The digits model as an artifact for one image at a time."""
    path = tmp_path_factory.mktemp("mistakes") / "digits.so"
    hr.compile(MODEL, shapes={"x": (1, 1, 8, 8)}, threads=1, output=path)
    return path


@pytest.mark.parametrize(
    ("use", "kind", "place"),
    [
        (np.argmax, hr.UserError, ""),
        (lambda ticket: np.asarray([ticket]), hr.UserError, ""),
        (lambda ticket: IMAGE + ticket, hr.UserError, ""),
        (lambda ticket: ticket.numpy(), AttributeError, "no attribute 'numpy': "),
        (lambda ticket: ticket.result(), AttributeError, "no attribute 'result': "),
        (lambda ticket: ticket[0], TypeError, "not subscriptable: "),
        (lambda ticket: [*ticket], TypeError, ""),
    ],
)
def test_a_ticket_is_not_a_result(use, kind, place):
    with pipeline.chain([lambda x: x]) as pipe:
        ticket = pipe.submit(IMAGE)
        with pytest.raises(kind, match=f"{place}a Ticket is not a result; call its wait\\(\\)"):
            use(ticket)
        assert not hasattr(ticket, "shape")
        assert copy.copy(ticket).seq == ticket.seq
        np.testing.assert_array_equal(ticket.wait(), IMAGE)


def test_a_ticket_is_not_an_input_of_a_model(artifact):
    with pipeline.chain([artifact]) as pipe:
        for wrong in (lambda: pipe.submit(pipe.submit(IMAGE)), lambda: pipe.push({"x": pipe.submit(IMAGE)})):
            with pytest.raises(hr.UserError, match=r"^input 'x': a Ticket is not a result; call its wait\(\)"):
                wrong()
        with pytest.raises(hr.UserError, match="'x': list does not become an array"):
            pipe.submit([pipe.submit(IMAGE)])
    with pipeline.chain([lambda ticket: ticket.wait()]) as other, pipeline.chain([abs]) as pipe:
        assert other.submit(pipe.submit(-3)).wait() == 3  # a function takes any object
