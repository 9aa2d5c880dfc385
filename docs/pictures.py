"""Make the two pictures of these pages: `python docs/pictures.py` writes them into docs/images."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import swathe
from swathe.core.sample_survey import make_sample
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.costs.plots import figure, plain
from swathe.files.preview import contact_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "images"
LINKS = {
    "LAN: 1 ms, 600 Mb/s": (0.001, 75e6),
    "WAN: 20 ms, 100 Mb/s": (0.020, 12.5e6),
    "WAN: 56 ms, 100 Mb/s": (0.056, 12.5e6),
}
"""Of each link: seconds until the first byte, and bytes a second of all streams together."""
SEGMENTS, SEGMENT_BYTES, GAP_BYTES = 100, 2_000, 60_000
"""What 100 small cutouts need of a frame of 6 MB, and what lies between."""
STREAMS = 8


def main() -> int:
    """Write both pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_sheet(Path(folder), IMAGES / "cutouts.png")
    cost_figure().savefig(IMAGES / "cost-model.png", dpi=90, metadata={"Software": None})
    return 0


def write_sheet(folder: Path, path: Path) -> None:
    """Draw 16 stars of the sample survey, cut by `cut_many`."""
    make_sample(folder / "survey", frames=6, targets=16, seed=1)
    manifest = swathe.cut_many(folder / "survey/targets.csv", folder / "cut", progress=False)
    cutouts = [swathe.open(folder / "cut" / name).images[0].data for name in manifest["path"]]
    captions = [f"{row['id']} {Path(row['source']).suffix}" for row in manifest]
    contact_sheet(cutouts, captions, columns=8, side=90).save(path, optimize=True)


def cost_figure() -> Figure:
    """Draw what the segments cost, against the number of requests by which they are read."""
    requests = np.arange(1, SEGMENTS + 1)
    # Each request less reads through one gap more.
    size = SEGMENTS * SEGMENT_BYTES + (SEGMENTS - requests) * GAP_BYTES
    made, (axes,) = figure(1, "100 segments of 2 kB in 6 MB, by 1 to 100 requests")
    for name, (wait_s, bytes_per_s) in LINKS.items():
        costs = Costs(
            connect_s=wait_s,
            open_s=wait_s,
            request=((0, wait_s), (1_000_000, wait_s + 1_000_000 / bytes_per_s)),
            total_bytes_per_s=bytes_per_s,
            requests_per_s=NO_LIMIT,
            streams=STREAMS,
        )
        milliseconds = 1000 * costs.read_s(size, requests, np.minimum(requests, STREAMS))
        (line,) = axes.plot(requests, milliseconds, label=name)
        best = int(milliseconds.argmin())
        axes.plot(requests[best], milliseconds[best], "o", color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="requests", ylabel="predicted time, ms")
    plain(axes.xaxis, axes.yaxis)
    axes.legend(title=f"{STREAMS} streams; dot: the plan")
    return made


if __name__ == "__main__":
    sys.exit(main())
