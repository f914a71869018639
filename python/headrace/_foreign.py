"""Formats of other programs, and which module reads each: it is imported when a text or a file may be of its format.

`load_param_dict` and `load_json` read files of TVM beside Headrace's own. The readers are in `_compat`, so this is the
one module outside of that folder that names modules in it.
"""

from __future__ import annotations

import importlib
from typing import Any

_READERS = {"tvm.params": "headrace._compat.tvm_files", "tvm.json": "headrace._compat.tvm_graph"}


def is_in(form: str, data: Any) -> bool:
    """Whether a text or bytes look like that format: "tvm.params" or "tvm.json"."""
    return importlib.import_module(_READERS[form]).recognise(data)


def read(form: str, data: Any, *more: Any) -> Any:
    """Reads a text or bytes with the reader of the format.

    Parameters
    ----------
    form : str
        "tvm.params": bytes, of tensors by name; "tvm.json": a text, of nodes.
    data : str or bytes
        The text or bytes, which are in the format.
    *more
        For "tvm.json" a function that gives the op of a name.

    Raises
    ------
    UserError
        For what is damaged, or holds what Headrace does not have.
    """
    return importlib.import_module(_READERS[form]).read(data, *more)
