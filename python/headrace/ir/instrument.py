"""As `headrace.instrument`."""

from headrace.instrument import (
    DumpIR,
    PassInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    PrintChanges,
    VerifyEach,
    VerifyText,
    pass_instrument,
)

__all__ = [
    "DumpIR",
    "PassInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintChanges",
    "VerifyEach",
    "VerifyText",
    "pass_instrument",
]
