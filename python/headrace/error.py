"""What Headrace raises."""

from headrace import _public
from headrace._core import InternalError, MissingError, UserError

__all__ = ["InternalError", "MissingError", "TVMError", "UserError"]

TVMError = UserError


_public.settle(__name__)
