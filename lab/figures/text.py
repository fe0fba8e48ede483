"""The format of numbers."""

import html
import math

DRIFTED = "†"
escape = html.escape


def short(value):
    """Formats a number as short as readable: small ones keep two digits, those below nine decimals become zero."""
    size = abs(value)
    for least, unit in [(1e9, "G"), (1e6, "M")]:
        if size >= least:
            return f"{value / least:.1f}{unit}"
    if size >= 1e4:
        return f"{value / 1e3:.0f}k"
    if size >= 0.1 or size == 0:
        text = f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"
        return text.removesuffix(".00")
    return f"{value:.{min(1 - math.floor(math.log10(size)), 9)}f}".rstrip("0").rstrip(".")


def exact(ratio):
    """Formats a ratio with enough decimals for the narrow intervals of counts."""
    return f"{ratio:.4f}" if ratio < 0.1 else f"{ratio:.3f}" if ratio < 100 else short(ratio)


def with_spread(value):
    """Formats the median, with the extremes if they read differently."""
    median, least, most = (short(value[name]) for name in ("median", "least", "most"))
    return median if least == median == most else f"{median} <small>{least}–{most}</small>"


def plus_minus(stated):
    """Formats the half width of a stated interval, in percent: ±? above 100%, as with too few rounds; nothing below
    half a percent, or without an interval."""
    percent = stated.half_width() * 100 if stated else 0
    return "±?" if percent > 100 else f"±{percent:.0f}%" if percent >= 0.5 else ""
