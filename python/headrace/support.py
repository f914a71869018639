"""How this build was made."""

from headrace._compat import places

__all__ = places.show(__name__)
