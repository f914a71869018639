"""Futures of tickets, for the pipelines of this process and for those on Ray."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any


class _TicketFuture(Future):
    """A future that is running from the start, whose cancelling is the request's."""

    def __init__(self, ticket: Any) -> None:
        super().__init__()
        self._ticket = ticket

    def cancel(self) -> bool:
        return self._ticket.cancel()


def future_of(ticket: Any) -> Future[Any]:
    """A future with what the ticket's `wait` returns or raises; cancelling it cancels the request."""
    future: Future[Any] = _TicketFuture(ticket)
    future.set_running_or_notify_cancel()

    def settle(done: Any) -> None:
        error = done.exception()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(done.wait())

    ticket.add_done_callback(settle)
    return future
