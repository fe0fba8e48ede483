"""Compares one whole measurement with another: does it find the ratios within the intervals that the first one
states?"""

from ratios import NOMINAL
from statistics import median

from text import exact


def all_ratios(figures):
    """Returns the ratios that should be found again. Nothing is promised of the longest calls."""
    return {
        (drawn.figure.id, panel.panel.title, one.place, one.over, one.under): (panel.panel, one)
        for drawn in figures
        for panel in drawn.panels
        if panel.panel.kind() != "extreme"
        for one in panel.ratios
    }


def hold(directory, first, second):
    before, now = all_ratios(first), all_ratios(second)
    held, unstated = [], 0
    for key in [key for key in now if key in before]:
        (_, old), (panel, new) = before[key], now[key]
        stated = old.interval(new.rounds)
        if stated is None:
            unstated += 1
            continue
        held.append(
            dict(zip(("figure", "panel", "place", "over", "under"), key))
            | {
                "first": old.ratio,
                "stated": stated._asdict(),
                "half_width": stated.half_width(),
                "second": new.ratio,
                "met": stated.contains(new.ratio),
                "timed": panel.kind() == "time",
                "drifted": old.drifted + new.drifted > 0,
            }
        )
    timed = [one for one in held if one["timed"]]
    undrifted = [one for one in timed if not one["drifted"]]
    counts = [one for one in held if not one["timed"]]
    met = lambda of: sum(one["met"] for one in of)
    return {
        "first": str(directory),
        "nominal": NOMINAL,
        "share": met(timed) / len(timed) if timed else None,
        "met": met(timed),
        "of": len(timed),
        "counts_met": met(counts),
        "counts_of": len(counts),
        "met_undrifted": met(undrifted),
        "of_undrifted": len(undrifted),
        # The median of the stated intervals' half widths.
        "half_width": median([one["half_width"] for one in timed]) if timed else None,
        "unstated": unstated,
        "missing": len(before.keys() ^ now.keys()),
        "ratios": held,
    }


def verdict(against):
    percent = lambda met, of: f" ({met / of:.1%})" if of else ""
    width = against["half_width"]
    narrow = f" (half of the intervals are narrower than ±{width:.1%})" if width is not None else ""
    return (
        "{met} of {of} ratios of times{share} lie within the previously stated interval, where {nominal:.0%} are "
        "expected{narrow}; "
        "{met_undrifted} of {of_undrifted}{share_undrifted} where no calibration drifted; "
        "{counts_met} of {counts_of} ratios of counts; {unstated} without a stated interval, "
        "{missing} in one measurement only"
    ).format(
        **against
        | {
            "share": percent(against["met"], against["of"]),
            "share_undrifted": percent(against["met_undrifted"], against["of_undrifted"]),
            "narrow": narrow,
        }
    )


def outside(against):
    """Yields a row for each ratio outside its interval: where, which ratio, before, stated, now."""
    for one in against["ratios"]:
        if not one["met"]:
            stated = one["stated"]
            yield (
                one["figure"],
                f"{one['panel']}, {one['place']}",
                f"{one['over']} to {one['under']}",
                exact(one["first"]),
                f"{exact(stated['low'])}–{exact(stated['high'])}",
                exact(one["second"]) + (" drifted" if one["drifted"] else ""),
            )
