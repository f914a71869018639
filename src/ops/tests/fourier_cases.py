"""Cases of dft and stft, by numpy's transforms; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, error

numbers = Numbers(71)
data, ints = numbers.data, numbers.ints


def parts(z: np.ndarray, dtype: str) -> list[np.ndarray]:
    return [z.real.astype(dtype), z.imag.astype(dtype)]


def short_time(x: np.ndarray, window: np.ndarray, n: int, hop: int, onesided: bool) -> np.ndarray:
    """The short-time Fourier transform of x[batch, length]; the window is in the middle of n elements."""
    left = (n - len(window)) // 2
    whole = np.zeros(n)
    whole[left : left + len(window)] = window
    frames = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), n, axis=1)[:, ::hop] * whole
    z = (np.fft.rfft if onesided else np.fft.fft)(frames, axis=-1).swapaxes(1, 2)
    return np.stack([z.real, z.imag], -1)


def add_dft() -> None:
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-3)):
        re, im = data(2, 3, 7).astype(dtype), data(2, 3, 7).astype(dtype)
        z = re.astype("complex128") + 1j * im
        case(f"dft {dtype}", "dft(%0, %1)", [re, im], parts(np.fft.fft(z), dtype), tolerance)
        inverse = parts(np.fft.ifft(z), dtype)
        case(f"dft inverse {dtype}", "dft(%0, %1, inverse=True)", [re, im], inverse, tolerance)
    one = data(4, 1)
    case("dft of one element", "dft(%0, %1)", [one, one], [one, one], 1e-6)
    error("dft", "dft(%0, %1)", [ints(4), ints(4)], "re_data must be floats of one axis or more")
    error("dft shapes", "dft(%0, %1)", [data(4), data(5)], "im_data must have the shape of re_data")


def add_stft() -> None:
    x = data(2, 19)
    for onesided in (True, False):
        for n, hop, window in ((8, 3, data(8)), (5, 2, ints(5)), (8, 4, data(5)), (4, 5, np.ones(4, "int64"))):
            call = f"stft(%0, %1, n_fft={n}, hop_length={hop}, win_length={n}, onesided={onesided})"
            want = short_time(x, window, n, hop, onesided).astype("float32")
            case(f"stft {n} {hop} {len(window)} {onesided}", call, [x, window], [want], 1e-4)
    want = (short_time(x, np.ones(6), 6, 1, True) / np.sqrt(6)).astype("float32")
    call = "stft(%0, %1, n_fft=6, hop_length=1, win_length=6, normalized=True)"
    case("stft normalized", call, [x, np.ones(6, "float32")], [want], 1e-4)
    call = "stft(%0, %1, n_fft=6, hop_length=1, win_length=6)"
    error("stft window", call, [x, data(7)], "window has 7 elements, and n_fft is 6")
    error("stft short", call, [data(2, 5), data(6)], "data has lines of 5 elements, and n_fft is 6")
    error("stft rank", call, [data(9), data(6)], "data must be floats [batch, length]")
    error("stft hop", call.replace("hop_length=1", "hop_length=0"), [x, data(6)], "hop_length must")


def add_fourier_cases() -> None:
    add_dft()
    add_stft()
