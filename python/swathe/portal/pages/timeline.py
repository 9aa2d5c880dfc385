"""Time lines as SVG: how many granules there are in each part of a span of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from swathe.portal.pages.words import moment, plural

WIDTH, HEIGHT = 1000, 60
BARS = 60


def time_line(starts: Sequence[float]) -> Markup | None:
    """Draw a bar for each part of the time in which granules begin; return `None` without times.

    Args:
        starts: first time of each granule, MJD in UTC.
    """
    if not starts:
        return None
    first, last = min(starts), max(starts)
    # At least a minute, so that granules of the same moment have a bar.
    step = max((last - first) / BARS, 1 / 1440) * (1 + 1e-9)
    counts = Counter(int((start - first) / step) for start in starts)
    most, width = max(counts.values()), WIDTH / BARS
    bars = [
        f'<rect x="{at * width:.1f}" y="{HEIGHT * (1 - number / most):.1f}" '
        f'width="{width - 1:.1f}" height="{HEIGHT * number / most:.1f}">'
        f"<title>{moment(first + at * step)}: {plural(number, 'granule')}</title></rect>"
        for at, number in sorted(counts.items())
    ]
    about = f"{plural(len(starts), 'granule')} from {moment(first)} to {moment(last)}"
    opening = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{about}" xmlns="http://www.w3.org/2000/svg">'
    )
    return Markup("".join([opening, *bars, "</svg>"]))
