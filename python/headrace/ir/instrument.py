"""As `headrace.instrument`."""

from headrace.instrument import (
    DumpIR,
    PassInstrument,
    PassTimingInstrument,
    PrintAfterAll,
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
    "PrintChanges",
    "VerifyEach",
    "VerifyText",
    "pass_instrument",
]
