"""Numbers as people read them: few digits, one unit."""

from __future__ import annotations

from timetrial.statistics.intervals import Estimate

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
UNIT_NS = {unit: scale for scale, unit in _TIMES}
_BYTES = ((2**30, "GB"), (2**20, "MB"), (2**10, "kB"))


def significant(value: float, digits: int = 3) -> str:
    """Three digits, without an exponent: 8.93, 19.6, 288."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, digits - max(whole, 1))}f}"


def duration(ns: float) -> str:
    """A time: '8.93 ms'."""
    scale, unit = next(((scale, unit) for scale, unit in _TIMES if ns >= scale), _TIMES[-1])
    return f"{significant(ns / scale)} {unit}"


def seconds(value: float) -> str:
    """A waiting time: '45 s', '3 min', '2 h 10 min'."""
    if value < 90:
        return f"{max(1, round(value))} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def memory(size_bytes: float) -> str:
    """A size: '46 MB', '1.24 GB' (2^20 and 2^30 bytes)."""
    scale, unit = next(((scale, unit) for scale, unit in _BYTES if size_bytes >= scale), (1, "B"))
    amount = f"{size_bytes / scale:.{2 if unit == 'GB' else 0}f}"
    return f"{amount.removesuffix('.00')} {unit}"


def value_words(unit: str, value: float) -> str:
    """A number of a metric, by its unit: '8.93 ms', '46 MB', '812 samples/s'."""
    known = {"ns": duration, "bytes": memory, "1": significant}
    if unit in known:
        return known[unit](value)
    return f"{significant(value)} {'samples/s' if unit == '1/s' else unit}"


def measured_words(unit: str, estimate: Estimate) -> str:
    """'20.4 ms ±0.8 %'."""
    return f"{value_words(unit, estimate.estimate)} {plus_minus(estimate)}".rstrip()


def percent_interval(estimate: float, low: float, high: float) -> str:
    """Of effects, which are fractions: '+9.3 % [+1.2, +18.0]'."""
    return f"{100 * estimate:+.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]"


def interval_words(unit: str, value: float, low: float | None, high: float | None) -> str:
    """'8.31 ms [8.20 ms, 8.50 ms]'; the value alone where there is no interval."""
    if low is None or high is None:
        return value_words(unit, value)
    return f"{value_words(unit, value)} [{value_words(unit, low)}, {value_words(unit, high)}]"


def plus_minus(estimate: Estimate) -> str:
    """Half of the interval: '±0.4 %'; empty where one launch carries none; no number where it would be one
    that says nothing."""
    half = estimate.half_width
    if half is None:
        return ""
    return f"±{100 * half:.{1 if half < 0.095 else 0}f} %" if half <= WIDEST else "± unknown"


WIDEST = 1.0  # half of an interval, as a fraction, that is still worth a number
OF_PEAK = "the machine's f32 multiply-add peak, nominal work"


def accuracy_words(accuracy: Estimate) -> str:
    """'97.2 % ±0.8'; of a small half-width the first digit that is not 0."""
    center = 100 * accuracy.estimate
    if accuracy.low is None or accuracy.high is None:
        return f"{center:.1f} %"
    half = 100 * max(accuracy.high - accuracy.estimate, accuracy.estimate - accuracy.low)
    digits = 1
    while round(half, digits) == 0 and digits < 6:
        digits += 1
    return f"{center:.{digits}f} % ±{half:.{digits}f}"


def ratio_words(ratio: Estimate) -> str:
    """'2.19x faster [2.12, 2.25]'. Where the interval holds 1, nothing was shown."""
    faster = ratio.estimate < 1
    low, high = ratio.low, ratio.high
    estimate = 1 / ratio.estimate if faster else ratio.estimate
    if low is None or high is None:
        return f"{_factor(estimate)}x {'faster' if faster else 'slower'}"
    if low <= 1 <= high:
        return f"inconclusive [{_factor(1 / high)}, {_factor(1 / low)}]"
    if faster:
        low, high = 1 / high, 1 / low
    return f"{_factor(estimate)}x {'faster' if faster else 'slower'} [{_factor(low)}, {_factor(high)}]"


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 10 else significant(value)


def first_line(text: str | None) -> str:
    """Of a reason that may hold a traceback."""
    return text.strip().splitlines()[0] if text and text.strip() else ""
