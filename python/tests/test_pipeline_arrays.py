"""Arrays that pass through a pipeline: of every class and dtype of numpy they belong to their request alone."""

from __future__ import annotations

from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import pipeline


def copies(folder) -> dict[str, Any]:
    """For each kind of array a function that makes one, which later writes change."""

    def mapped(values):
        made = np.memmap(folder / "mapped", "float64", "w+", shape=(2,))
        made[:] = values
        return made

    return {
        "plain": lambda values: np.array(values, "float64"),
        "mapped": mapped,
        "big-endian": lambda values: np.array(values, ">f8"),
        "text": lambda values: np.array([str(value) for value in values], "U8"),
        "masked": lambda values: np.ma.masked_array(np.array(values, "float64"), mask=[False, True]),
        "objects": lambda values: np.array(values, object),
    }


KINDS = ["plain", "mapped", "big-endian", "text", "masked", "objects"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_of_the_caller_may_be_used_again(kind, tmp_path):
    buffer = copies(tmp_path)[kind]([0.0, 0.0])
    with pipeline.chain([lambda x: str(x[0])], max_inflight=8) as pipe:
        tickets = []
        for i in range(8):
            buffer[0] = float(i)
            tickets.append(pipe.submit(buffer))
        assert [float(ticket.wait()) for ticket in tickets] == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_of_a_function_may_be_used_again(kind, tmp_path):
    buffer = copies(tmp_path)[kind]([0.0, 0.0])

    def fill(x):
        buffer[0] = float(x)
        return buffer

    with pipeline.chain([fill], max_inflight=8) as pipe:
        tickets = [pipe.submit(i) for i in range(8)]
        assert [float(ticket.wait()[0]) for ticket in tickets] == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_cannot_write_to_its_inputs(kind, tmp_path):
    given = copies(tmp_path)[kind]([1.0, 2.0])

    def write(x):
        x[0] = 7.0
        return 0

    with pipeline.chain([write]) as pipe, pytest.raises(pipeline.StageFailed, match="read-only"):
        pipe.submit(given).wait()
    assert float(given[0]) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_of_a_request_share_no_memory(kind, tmp_path):
    make = copies(tmp_path)[kind]
    graph = pipeline.Graph()
    stage = graph.stage(lambda x: make([x, 2.0]), "make")
    graph.input("x").connect(stage.input(0))
    stage.output().connect(graph.output("a"))
    stage.output().connect(graph.output("b"))
    with graph.build() as pipe:
        a, b = pipe.submit(1.0).wait()
        a[0] = 7.0
        assert float(b[0]) == 1


def test_a_mask_stays():
    given = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pipeline.chain([lambda x: float(x.sum())]) as pipe:
        assert pipe.submit(given).wait() == 1


def test_a_mapped_file_feeds_a_program_behind_a_function(tmp_path):
    program = tmp_path / "twice.relay"
    program.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { add(%x, %x) }\n')
    hr.compile(program, output=tmp_path / "twice.so")
    np.save(tmp_path / "frames.npy", np.arange(6, dtype="float32").reshape(3, 2))
    frames = np.load(tmp_path / "frames.npy", mmap_mode="r")
    with pipeline.chain([lambda i: frames[i], tmp_path / "twice.so"]) as pipe:
        assert [y.numpy().tolist() for y in pipe.map(range(3))] == [[0, 2], [4, 6], [8, 10]]


@pytest.mark.parametrize("kind", KINDS)
def test_who_writes_into_a_result_changes_nothing_that_a_function_kept(kind, tmp_path):
    make = copies(tmp_path)[kind]
    kept = []

    def distance(frame):
        kept.append(frame)
        return [float(one[0]) for one in kept]

    graph = pipeline.Graph()
    source = graph.stage(lambda x: make([x, 0.0]), "source")
    tracker = graph.stage(distance, "tracker")
    graph.input("x").connect(source.input(0))
    source.output().connect(tracker.input(0))
    source.output().connect(graph.output("frame"))
    tracker.output().connect(graph.output("seen"))
    with graph.build() as pipe:
        for i in range(3):
            frame, seen = pipe.submit(float(i)).wait()
            assert seen == [float(one) for one in range(i + 1)]
            frame[0] = -50.0
