"""The exceptions that Headrace raises."""

from headrace import _public
from headrace._core import DiagnosticError, InternalError, MissingError, UserError

__all__ = ["DiagnosticError", "InternalError", "MissingError", "TVMError", "UserError"]

TVMError = UserError


_public.settle(__name__)
