"""As `headrace.instrument`."""

from headrace.instrument import *  # noqa: F403
from headrace.instrument import __all__ as __all__
