"""Streams of items: `Pipeline.map` when items fail, are refused, or end with an error of their source."""

from __future__ import annotations

import threading

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")


def bad_in_the_middle(x):
    if 20 <= x < 40:
        raise ValueError(f"bad {x}")
    return x


def kinds(results):
    return [type(result).__name__ for result in results]


def test_each_item_of_a_broken_pipeline_has_a_result():
    """A stage that fails often refuses requests, which are results, too; `reset` lets those after them in."""
    given = []
    with pipeline.chain([bad_in_the_middle], max_inflight=4, failures_in_row=2, probe_seconds=1000) as pipe:

        def items():
            for x in range(60):
                if x == 50:
                    pipe.reset()
                yield x

        for result in pipe.map(items(), return_errors=True):
            given.append(result)
    assert len(given) == 60
    assert given[:20] == list(range(20))
    assert set(kinds(given[20:50])) == {"StageFailed", "PipelineBroken"}
    assert given[50:] == list(range(50, 60))


def test_an_item_that_does_not_fit_is_a_result(artifact, images):
    items = [*images[:5, None], images[5], *images[6:8, None]]
    with pipeline.chain([artifact], max_inflight=3) as pipe:
        results = list(pipe.map(items, return_errors=True))
        expected = list(pipe.map([*images[:5, None], *images[6:8, None]]))
    assert type(results[5]) is hr.UserError
    assert "input 'x' has 3 dimensions" in str(results.pop(5))
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.numpy(), wanted.numpy())


def test_a_refused_item_is_named_after_the_results_before_it(artifact, images):
    seen = []
    with pipeline.chain([artifact]) as pipe:
        with pytest.raises(hr.UserError, match="item 5 of map: input 'x' has 3 dimensions") as caught:
            for result in pipe.map([*images[:5, None], images[5], images[6][None]]):
                seen.append(result)
        assert type(caught.value) is hr.UserError
        metrics = pipe.metrics()
    assert len(seen) == 5
    assert (metrics["succeeded"], metrics["cancelled"]) == (5, 0)


def test_the_error_of_a_request_before_comes_first(artifact, images):
    """Errors are in the order of the items, whether a request failed or was refused."""

    def check(x):
        if x.sum() == 0:
            raise KeyError("empty")
        return x

    with pipeline.chain([check, artifact]) as pipe, pytest.raises(pipeline.StageFailed, match="empty"):
        list(pipe.map([images[:1], np.zeros((1, 1, 8, 8), "float32"), "text", images[:1]]))


@pytest.mark.parametrize("return_errors", [False, True])
def test_a_source_that_raises_does_so_after_its_results(return_errors):
    class Unplugged(Exception):
        pass

    def camera():
        yield from range(5)
        raise Unplugged("camera 0", 7)

    seen = []
    with pipeline.chain([lambda x: x]) as pipe:
        with pytest.raises(Unplugged) as caught:
            for result in pipe.map(camera(), return_errors=return_errors):
                seen.append(result)
        assert pipe.metrics()["cancelled"] == 0
    assert seen == list(range(5))
    assert caught.value.args == ("camera 0", 7)


@pytest.mark.parametrize("return_errors", [False, True])
def test_a_stopped_pipeline_ends_an_endless_stream(return_errors):
    def stopping(pipe):
        yield 1
        pipe.submit(1).wait()  # so that the first item is done
        pipe.stop()
        while True:
            yield 2

    seen = []
    pipe = pipeline.chain([lambda x: x])
    with pytest.raises(pipeline.PipelineStopped, match="item 1 of map: the pipeline is stopped"):
        for result in pipe.map(stopping(pipe), return_errors=return_errors):
            seen.append(result)
    assert seen == [1]
    built = pipeline.chain([abs], start=False)
    with pytest.raises(pipeline.PipelineNotStarted, match="item 0 of map"):
        next(built.map(iter(int, 1), return_errors=return_errors))


def test_a_reader_that_goes_away_cancels_what_is_left():
    gate = threading.Event()

    def wait(x):
        if x:
            gate.wait(10)
        return x

    taken = iter(range(10))
    with pipeline.chain([wait], max_inflight=4) as pipe:
        results = pipe.map(taken, return_errors=True)
        assert next(results) == 0
        results.close()
        gate.set()
        assert next(taken, None) is not None  # the source is the caller's, and goes on
    assert pipe.metrics()["cancelled"] >= 2


def test_a_deadline_of_a_stream_is_checked_before_its_items():
    with pipeline.chain([abs]) as pipe, pytest.raises(hr.UserError, match=r"^deadline: expected seconds, got 'soon'$"):
        list(pipe.map([1], deadline="soon", return_errors=True))


def test_maps_whose_unread_results_are_limited():
    """Each reads its own results where the pipeline is full, and does not wait for a place that they would free."""
    with pipeline.chain([lambda x: x], max_inflight=8, max_unread=4) as pipe:
        done = []
        threads = [
            threading.Thread(target=lambda: done.append(list(pipe.map(range(500)))), daemon=True) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert done == [list(range(500))] * 3


def test_a_map_beside_tickets_that_are_not_read():
    with pipeline.chain([lambda x: x], max_inflight=8, max_unread=4) as pipe:
        held = [pipe.submit(i) for i in range(5)]
        done = []
        thread = threading.Thread(target=lambda: done.extend(pipe.map(range(100))), daemon=True)
        thread.start()
        thread.join(20)
        assert done == list(range(100))
        assert [ticket.wait() for ticket in held] == list(range(5))
        assert pipe.metrics()["submitted"] == 105
