"""Answers of checks that users write: whether a compiler takes a call or a match of a pattern, and why not.

True means yes; False means no; a str or a `Refusal` means no, and says why. As in Relay, any other value counts by its
truth. C++ reads these answers by `partition::read_answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headrace import _arguments, _core, _public

__all__ = ["Refusal"]


@dataclass(frozen=True)
class Refusal:
    """A "no" of a backend or of a check, with the reason's code, from which `headrace explain` tells what would help.

    Parameters
    ----------
    reason : str
        "OP_UNSUPPORTED", which a str alone stands for, "ATTRIBUTE_UNSUPPORTED", "DTYPE_UNSUPPORTED",
        "SHAPE_UNSUPPORTED", "OPSET_UNSUPPORTED", "DYNAMIC_UNSUPPORTED", "DATA_DEPENDENT" or "BAD_MODEL".
    message : str
        A sentence in which "it" is the op: "its dtype is not float32".

    Raises
    ------
    UserError
        For another reason.
    """

    reason: str
    message: str

    def __post_init__(self) -> None:
        _core.refusal_reason(_arguments.text(self.reason, "Refusal: reason"))
        _arguments.text(self.message, "Refusal: message")

    def __bool__(self) -> bool:
        return False

    def asobject(self) -> list[Any]:
        """The form in which C++ takes it: the reason's number, and the message."""
        return [_core.refusal_reason(self.reason), self.message]


def read_answer(answer: Any) -> bool | str | Refusal:
    """An answer as True, False, or why not."""
    return answer if isinstance(answer, (str, Refusal)) else bool(answer)


def is_plain(answer: Any) -> bool:
    """Whether an answer is one of those that are documented: True, False, a str, a Refusal."""
    return isinstance(answer, (str, Refusal)) or type(answer).__name__ in ("bool", "bool_")  # numpy has one of its own


def checked_table(table: Any) -> Any:
    """A table of patterns as C++ takes it: its checks give answers that C++ reads, whatever the user's give."""
    if isinstance(table, str) or not isinstance(table, Iterable):
        return table

    def checked(check: Callable[[Any], Any]) -> Callable[[Any], bool | str | Refusal]:
        return lambda root: read_answer(check(root))

    def entry(row: Any) -> Any:
        has_check = isinstance(row, (list, tuple)) and len(row) == 3 and callable(row[2])
        return [row[0], row[1], checked(row[2])] if has_check else row

    return [entry(row) for row in table]


_public.publish(__name__, "headrace.backend")
