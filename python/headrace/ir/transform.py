"""As `headrace.transform`."""

from headrace.transform import *  # noqa: F403
from headrace.transform import __all__ as __all__
