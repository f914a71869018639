"""The options of headrace.compile that torch.compile and from_torch pass on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from headrace import _arguments, compiler
from headrace._core import UserError
from headrace.relay._text import fromtext

__all__: list[str] = []

# Those of compile() that suit any model. The others name inputs, or files that belong to one model.
COMMON = (
    "backend_options",
    "backends",
    "cache",
    "costs",
    "cpu",
    "disabled_passes",
    "features",
    "jobs",
    "opt_level",
    "placement",
    "target",
    "threads",
)


def known_options(options: Mapping[str, Any] | None, known: Iterable[str]) -> dict[str, Any]:
    """Returns the options as a dict. Raises UserError for an unknown one, and names the nearest known one."""
    given = _arguments.mapping(options, "options", 'options={"threads": 2}')
    names = sorted(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            told = f"did you mean '{near[0]}'?" if near else f"the options are {', '.join(names)}"
            raise UserError(f"options: there is no option '{name}'; {told}")
    return given


def check_values(options: Mapping[str, Any]) -> None:
    """Compiles a model of one op with the options, so that a bad value is an error before anything is exported."""
    if options:
        text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1), float32]) { exp(%x) }'
        compiler.compile(fromtext(text), **options)
