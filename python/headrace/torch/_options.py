"""The options of headrace.compile that torch.compile and from_torch pass on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from headrace import _arguments
from headrace._core import UserError

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
