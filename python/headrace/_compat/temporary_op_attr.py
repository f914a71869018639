"""Attributes of ops for a while."""

from __future__ import annotations

from typing import Any

from headrace import _public
from headrace._core import UserError
from headrace._op import Op, setter_of

__all__ = ["TempOpAttr"]


class TempOpAttr:
    """Sets an attribute of an op, as `Op.set_attr`, from `with` to the end of the block.

    Parameters
    ----------
    op_name : str
        The op.
    attr_key : str
        The attribute, such as "FTVMLegalize".
    attr_value
        Its value in the block.

    Raises
    ------
    UserError
        For "FTVMCompute", which is not taken back.
    """

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        if setter_of(attr_key) is not None:
            raise UserError(
                f"TempOpAttr: {attr_key}: what computes an op is not taken back; relay.op.register_compute sets it"
            )
        self.op = Op.get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value
        self.older_attr: Any = None

    def __enter__(self) -> TempOpAttr:
        self.older_attr = self.op.get_attr(self.attr_key)
        self.op.set_attr(self.attr_key, self.attr_value)
        return self

    def __exit__(self, *error: object) -> None:
        self.op.reset_attr(self.attr_key)
        if self.older_attr is not None:
            self.op.set_attr(self.attr_key, self.older_attr)


_public.publish(__name__, "headrace.relay.testing")
