"""What Headrace raises."""

from headrace._core import InternalError, MissingError, UserError

__all__ = ["InternalError", "MissingError", "TVMError", "UserError"]

TVMError = UserError
