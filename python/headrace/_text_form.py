"""The text forms of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace._ffi import api


def text_of(node: Any) -> str:
    """The text form without large data; of what has none, or has names that are not text, a short text."""
    try:
        return api("relay.ir.AsText")(node, False, None, True)
    except (_core.UserError, UnicodeDecodeError):
        return node._short_text()


class Printed:
    """Adds the methods of the text form to expressions and modules."""

    __slots__ = ()

    def astext(
        self,
        show_meta_data: bool = True,
        annotate: Callable[[Any], str | None] | None = None,
        show_types: bool | None = None,
    ) -> str:
        """The text form, which `relay.parse` reads; without the data of large constants it cannot be read back.

        `annotate` answers with a comment to stand behind an expression, as in `relay.astext`; with `show_types` each
        has the type that InferType found there, if it ran; they are shown unless `annotate` is given.
        """
        return api("relay.ir.AsText")(
            self, bool(show_meta_data), annotate, annotate is None if show_types is None else bool(show_types)
        )

    def __str__(self) -> str:
        return text_of(self)

    def __repr__(self) -> str:
        return text_of(self)
