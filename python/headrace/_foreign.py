"""Formats of other programs, and which module reads each: it is imported when a text or a file may be of its format.

`load_param_dict` reads files of TVM beside Headrace's own. The readers are in `_compat`, so this is the one module
outside of that folder that names modules in it.
"""

from __future__ import annotations

import importlib
from typing import Any

_READERS = {"tvm.params": "headrace._compat.tvm_files"}


def is_in(form: str, data: Any) -> bool:
    """Whether bytes look like that format: "tvm.params"."""
    return importlib.import_module(_READERS[form]).recognise(data)


def read(form: str, data: Any) -> Any:
    """Reads bytes with the reader of the format.

    Parameters
    ----------
    form : str
        "tvm.params": tensors by name.
    data : bytes
        The bytes, which are in the format.

    Raises
    ------
    UserError
        For what is damaged, or holds what Headrace does not have.
    """
    return importlib.import_module(_READERS[form]).read(data)
