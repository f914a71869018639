"""Data types and matches, by the place where users of Relay look for them."""

from headrace.relay._classes import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
)

__all__ = [
    "Clause",
    "Constructor",
    "Match",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "TypeData",
]
