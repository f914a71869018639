"""The exceptions that Headrace raises."""

from headrace import _public
from headrace._core import DiagnosticError, InternalError, MissingError, UserError

__all__ = ["DiagnosticError", "InternalError", "MissingError", "SessionError", "TVMError", "UserError"]

TVMError = UserError


class SessionError(UserError, RuntimeError):
    """A wrong call of an InferenceSession; both ValueError and RuntimeError, as onnxruntime raises either."""


_public.settle(__name__)
