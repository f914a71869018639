"""Padding as Relay's functions write it into attributes: all the begins, then all the ends."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from headrace import _public
from headrace._core import UserError

__all__ = ["get_pad_tuple1d", "get_pad_tuple2d", "get_pad_tuple3d"]


def get_pad_tuple1d(padding: Any) -> tuple[int, ...]:
    """Padding of one axis.

    Parameters
    ----------
    padding : int or sequence of int
        For both sides, or left and right.

    Returns
    -------
    (left, right)

    Raises
    ------
    UserError
        For other lengths, and what is not a whole number.
    """
    return pad_tuple(padding, 1)


def get_pad_tuple2d(padding: Any) -> tuple[int, ...]:
    """Padding of two axes.

    Parameters
    ----------
    padding : int or sequence of int
        For all sides, for (height, width), or (top, left, bottom, right).

    Returns
    -------
    (top, left, bottom, right)

    Raises
    ------
    UserError
        As `get_pad_tuple1d`.
    """
    return pad_tuple(padding, 2)


def get_pad_tuple3d(padding: Any) -> tuple[int, ...]:
    """Padding of three axes.

    Parameters
    ----------
    padding : int or sequence of int
        For all sides, for (depth, height, width), or (front, top, left, back, bottom, right).

    Returns
    -------
    (front, top, left, back, bottom, right)

    Raises
    ------
    UserError
        As `get_pad_tuple1d`.
    """
    return pad_tuple(padding, 3)


def pad_tuple(padding: Any, rank: int, what: str = "padding") -> tuple[int, ...]:
    """Padding of `rank` axes: one number, one for each axis, or the begins and then the ends; errors call it `what`."""
    given = list(padding) if isinstance(padding, Iterable) and not isinstance(padding, str) else [padding]
    try:
        if any(isinstance(size, bool) for size in given):
            raise TypeError
        sizes = tuple(operator.index(size) for size in given)
    except TypeError:
        raise UserError(f"{what}: expected whole numbers, got {padding!r}") from None
    if len(sizes) not in (1, rank, 2 * rank):
        raise UserError(
            f"{what}: expected one number, {rank} (one for each axis) or {2 * rank} (the begins, then the ends), got "
            f"{len(sizes)}"
        )
    if len(sizes) == 2 * rank:
        return sizes
    return (sizes * rank if len(sizes) == 1 else sizes) * 2


_public.publish(__name__, "headrace.relay.op.nn.utils")
_public.settle(__name__)
