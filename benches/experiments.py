"""All experiments of `swathe bench` on this machine, set beside the figures of 2005 and 2007.

    python benches/experiments.py [--short] [--only NAME] [--sample DIR] [--output DIR]

Stores: a local folder, and behind the proxy of the tests nginx as on a LAN (1 ms, 600 Mb/s) and a
WAN (56 ms, 160 Mb/s), XRootD and S3 (1 ms, 600 Mb/s): the links are those of 2005, by what a copy
could reach then. Whole reports go below build/bench/experiments, a page with small figures and
tables to docs/experiments; `--short` tries all of it and leaves docs alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import experiments_page
from links import FOLDER, Link, reach
from portal import register, running
from swathe.experiments.buffering import buffer
from swathe.experiments.load import load
from swathe.experiments.ramp import ramp
from swathe.experiments.region import region
from swathe.experiments.report import keep
from swathe.experiments.settings import Buffer, Load, Ramp, Region, Single
from swathe.experiments.single import single
from swathe.experiments.study import Study
from swathe.sample import make_sample

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
DOCS = HERE.parent / "docs" / "experiments"
LAN, WAN = 75_000_000, 20_000_000
LINKS = (
    Link("nginx", 1, LAN, label="nginx-lan"),
    Link("nginx", 56, WAN, label="nginx-wan"),
    Link("xrootd", 1, LAN, label="xrootd-lan"),
    Link("s3", 1, LAN, label="s3-lan"),
)
NAMES = ("single", "region", "ramp", "load", "buffer")


@dataclass
class Places:
    """Where the frames are.

    Attributes:
        local: their folder.
        remote: stores of the catalogue, with the proxy before each.
        portal: URL of a portal that has them.
        frames: how many.
    """

    local: str
    remote: dict[str, Any]
    portal: str
    frames: int
    short: bool
    common: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.common = {"frames": self.frames}

    @property
    def stores(self) -> tuple[str, ...]:
        """All of them."""
        return (self.local, *self.remote)

    def choose(self, full: Any, short: Any) -> Any:
        """Choose a setting for a whole run or to try it."""
        return short if self.short else full

    def sent(self, store: str) -> Callable[[], int]:
        """Give what counts the bytes that a store has sent."""
        return lambda: int(self.remote[store].stats()["bytes_down"])


def one_client(at: Places) -> list[Study]:
    """Stages of a crop: everybody on local files, on servers ourselves and cfitsio."""
    here = Single(
        stores=(at.local,),
        images=at.choose(10, 1),
        repeats=at.choose(2, 1),
        budget_s=at.choose(1.5, 0.1),
        **at.common,
    )
    there = Single(
        stores=tuple(at.remote),
        clients=("swathe", "swathe-indexed", "cfitsio"),
        methods=("GZ", "GUNZIP", "FIT", "fz"),
        images=at.choose(6, 1),
        repeats=1,
        budget_s=at.choose(1.0, 0.1),
        **at.common,
    )
    return [single(here, FOLDER, say), single(there, FOLDER, say)]


def region_sizes(at: Places) -> list[Study]:
    """Regions of 10, 100, 1000 pixels from every store."""
    settings = Region(
        stores=at.stores,
        regions=at.choose(40, 3),
        repeats=at.choose(2, 1),
        budget_s=at.choose(2.0, 0.3),
        **at.common,
    )
    counters = {store: at.sent(store) for store in at.remote}
    return [region(settings, FOLDER, say, counters)]


def clients_join(at: Places) -> list[Study]:
    """1 to 100 clients: closed against every store and a portal, open against the local one."""
    steps = {
        "clients": at.choose(100, 5),
        "join_s": at.choose(0.12, 0.1),
        "stay_s": at.choose(4.0, 0.6),
        "window_s": at.choose(0.5, 0.2),
        **at.common,
    }
    closed = ramp(Ramp(stores=at.stores, **steps), FOLDER, say)
    portal = ramp(Ramp(portal=at.portal, kind="thread", **steps), FOLDER, say)
    # As many as two thirds of what clients that wait for their answers got.
    rate = 0.67 * float(closed.table["peak"][0]) / steps["clients"]
    opened = ramp(Ramp(stores=(at.local,), model="open", rate=rate, **steps), FOLDER, say)
    return [closed, portal, opened]


def reductions(at: Places) -> list[Study]:
    """Light and heavy mixes on local files and over the LAN."""
    settings = Load(
        stores=(at.local, "nginx-lan"),
        workers=at.choose((1, 2, 4, 8), (1, 2)),
        level_s=at.choose(4.0, 0.5),
        interval_s=at.choose(0.25, 0.1),
        depth=at.choose(20, 2),
        **at.common,
    )
    return [load(settings, FOLDER, say)]


def buffers(at: Places) -> list[Study]:
    """The read-buffer study of every store."""
    frame = "frame-000001.fit"
    stores = (f"{at.local}/{frame}", *(f"{store}:{frame}" for store in at.remote))
    settings = Buffer(stores=stores, repeats=at.choose(5, 1), budget_s=at.choose(6.0, 0.5))
    return [buffer(settings, None, say)]


EXPERIMENTS = dict(
    zip(NAMES, (one_client, region_sizes, clients_join, reductions, buffers), strict=True)
)


def say(text: str) -> None:
    """Tell what is under way."""
    print(f"  {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def places(sample: Path, frames: int, short: bool) -> Iterator[Places]:
    """Serve the frames in every way."""
    used = FOLDER / "frames"
    used.mkdir()
    for number in range(1, frames + 1):
        for path in sample.glob(f"frame-{number:06}.*"):
            # No link: a portal does not follow those that lead out of a store.
            shutil.copy(path, used / path.name)
    with contextlib.ExitStack() as stack:
        database = os.environ["SWATHE_DATABASE"]
        (FOLDER / "portal").mkdir()
        settings = register(FOLDER / "portal", used)
        serve = ["-m", "swathe.cli", "serve", "--config", str(settings), "--port", "0", "--json"]
        portal = stack.enter_context(running([sys.executable, *serve]))
        os.environ["SWATHE_DATABASE"] = database
        remote = {link.id: stack.enter_context(reach(link, used)) for link in LINKS}
        yield Places(str(used), remote, portal.url, frames, short)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a little of everything, no page")
    parser.add_argument("--only", choices=NAMES, action="append", help="may be repeated")
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--sample", type=Path, default=BUILD / "sample", help="kept between runs")
    parser.add_argument("--output", type=Path, help="of the page; else docs/experiments")
    arguments = parser.parse_args()
    frames = 3 if arguments.short else arguments.frames
    if not (arguments.sample / f"frame-{frames:06}.fit.fz").exists():
        make_sample(arguments.sample, frames, 1, frames)
    names = arguments.only or NAMES
    found: dict[str, list[Study]] = {}
    with places(arguments.sample, frames, arguments.short) as at:
        for name in names:
            started = time.perf_counter()
            print(f"{name} ...", file=sys.stderr, flush=True)
            found[name] = EXPERIMENTS[name](at)
            for number, study in enumerate(found[name], 1):
                print("\n".join(study.sentences))
                keep(study, BUILD / "experiments" / f"{name}-{number}")
            print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    output = arguments.output or (BUILD / "experiments" / "page" if arguments.short else DOCS)
    if set(names) == set(NAMES):
        output.mkdir(parents=True, exist_ok=True)
        for name, studies in found.items():
            for number, study in enumerate(studies, 1):
                small_figures(study, output, f"{name}-{number}" if len(studies) > 1 else name)
        page = experiments_page.page(found, at.local)
        (output / "README.md").write_text(page)
        print(output / "README.md")


FIGURES = {
    "single": ("overview",),
    "region": ("regions",),
    "ramp": ("ramp-1", "ramp-2", "ramp-3"),
    "load": ("load-1-light", "load-2-heavy"),
    "buffer": ("buffer-1", "buffer-3"),
}
"""Those that are kept with the page."""


def small_figures(study: Study, folder: Path, name: str) -> None:
    """Keep some figures of a study, as PNG of few colours."""
    from PIL import Image

    for each in FIGURES[study.kind]:
        if each in study.figures:
            drawn = io.BytesIO()
            study.figures[each].savefig(drawn, format="png", dpi=60)
            picture = Image.open(drawn).convert("RGB").quantize(48)
            picture.save(folder / f"{name}-{each}.png", optimize=True)


if __name__ == "__main__":
    main()
