"""The errors of the example that are not bugs: the command line prints their text and ends with code 3."""


class UnusableError(Exception):
    """Something that the user named cannot be used; the message says what, why, and what to do."""


class PictureError(UnusableError):
    """A picture that cannot be read."""


class CacheError(UnusableError):
    """A folder that cannot hold artifacts."""
