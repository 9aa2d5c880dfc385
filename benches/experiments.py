"""All experiments of `swathe bench` on this machine, set beside the figures of 2005 and 2007.

    python benches/experiments.py [--short] [--only NAME] [--sample DIR] [--output DIR]

Stores: a local folder, and behind the proxy of the tests nginx as on a LAN (1 ms, 600 Mb/s) and a
WAN (56 ms, 160 Mb/s), XRootD and S3 (1 ms, 600 Mb/s): the links are those of 2005, by what a copy
could reach then. Whole reports go below build/bench/experiments, a page with small figures and
tables to docs/experiments. It is made of what is kept there, so with `--only` one part is measured
anew and the others stay as they were; `--short` tries all of it, beside those, and leaves docs
alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import experiments_page
import links
from portal import register, running
from swathe.catalog import Catalog
from swathe.core.sample_survey import make_sample
from swathe.experiments.buffer_experiment import buffer
from swathe.experiments.clients.ramp_schedule import Schedule
from swathe.experiments.load_experiment import load
from swathe.experiments.ramp_experiment import ramp
from swathe.experiments.region_experiment import region
from swathe.experiments.results.report import keep
from swathe.experiments.results.result import Study, read_result
from swathe.experiments.settings import (
    BufferSettings,
    LoadSettings,
    RampSettings,
    RegionSettings,
    SingleSettings,
)
from swathe.experiments.single_experiment import single
from swathe.experiments.statistics import edges_of
from tests.support import servers
from tests.support.clocks import wrong_by

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
DOCS = HERE.parent / "docs" / "experiments"
LAN, WAN = 75_000_000, 20_000_000
LINKS = (
    links.Link("nginx", 1, LAN, label="nginx-lan"),
    links.Link("nginx", 56, WAN, label="nginx-wan"),
    links.Link("xrootd", 1, LAN, label="xrootd-lan"),
    links.Link("s3", 1, LAN, label="s3-lan"),
)
NAMES = ("single", "region", "ramp", "hosts", "load", "buffer")
LOCAL = "local"
AHEAD_S, FAR_MS = 3.2, 56
"""Of the clock of the second of two hosts, and how far it is."""


@dataclass
class Places:
    """Where the frames are, besides the store `local`.

    Attributes:
        remote: stores of the catalogue, with the proxy before each.
        portal: URL of a portal that has them.
        frames: how many.
    """

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
        return (LOCAL, *self.remote)

    def choose(self, full: Any, short: Any) -> Any:
        """Choose a setting for a whole run or to try it."""
        return short if self.short else full

    def sent(self, store: str) -> Callable[[], int]:
        """Give what counts the bytes that a store has sent."""
        return lambda: int(self.remote[store].stats()["bytes_down"])


def one_client(at: Places) -> list[Study]:
    """Stages of a crop: everybody on local files and on servers."""
    here = SingleSettings(
        stores=(LOCAL,),
        images=at.choose(10, 1),
        repeats=at.choose(2, 1),
        budget_s=at.choose(1.5, 0.1),
        **at.common,
    )
    there = SingleSettings(
        stores=tuple(at.remote),
        methods=at.choose(SingleSettings.methods, ("GZ", "FIT", "fz")),
        images=at.choose(6, 1),
        repeats=1,
        budget_s=at.choose(1.0, 0.1),
        **at.common,
    )
    return [single(here, links.FOLDER, say), single(there, links.FOLDER, say)]


def region_sizes(at: Places) -> list[Study]:
    """Regions of 10, 100, 1000 pixels from every store."""
    settings = RegionSettings(
        stores=at.stores,
        regions=at.choose(40, 3),
        repeats=at.choose(2, 1),
        budget_s=at.choose(2.0, 0.3),
        **at.common,
    )
    counters = {store: at.sent(store) for store in at.remote}
    return [region(settings, links.FOLDER, say, counters)]


def joining(at: Places) -> dict[str, Any]:
    """How clients join."""
    return {
        "clients": at.choose(100, 5),
        "join_s": at.choose(0.12, 0.1),
        "stay_s": at.choose(4.0, 0.6),
        "window_s": at.choose(0.5, 0.2),
        **at.common,
    }


def clients_join(at: Places) -> list[Study]:
    """1 to 100 clients: closed against every store and a portal, open against the local one."""
    steps = joining(at)
    closed = ramp(RampSettings(stores=at.stores, **steps), links.FOLDER, say)
    portal = ramp(RampSettings(portal=at.portal, kind="thread", **steps), links.FOLDER, say)
    # As many as two thirds of what clients that wait for their answers got.
    rate = 0.67 * float(closed.table["peak"][0]) / steps["clients"]
    opened = ramp(
        RampSettings(stores=(LOCAL,), model="open", rate=rate, **steps), links.FOLDER, say
    )
    return [closed, portal, opened]


def several_hosts(at: Places) -> list[Study]:
    """Clients on two hosts: at a rate on local files, closed over the LAN."""
    steps = joining(at)
    opened = RampSettings(stores=(LOCAL,), model="open", rate=5.0, **steps)
    closed = RampSettings(stores=("nginx-lan",), **steps)
    studies = [on_two_hosts(settings) for settings in (opened, closed)]
    length = (opened.clients - 1) * opened.join_s + opened.stay_s
    schedule = Schedule(0.0, opened.join_s, length, opened.rate)
    edges = edges_of(0.0, length, opened.window_s)
    edges[-1] = length
    due, _ = np.histogram(np.concatenate([*map(schedule.due, range(opened.clients))]), edges)
    offered = studies[0].more[f"Over time: {LOCAL}"]["offered"] * np.diff(edges)
    studies[0].circumstances["most_missed"] = float(np.abs(offered - due).max())
    studies[0].circumstances["most_due"] = int(due.max())
    return studies


def on_two_hosts(settings: RampSettings) -> Study:
    """Run a ramp on two processes that join it, of which one is far and has a wrong clock."""
    address = f"127.0.0.1:{servers.free_port()}"
    wrong = wrong_by(AHEAD_S)
    lent: list[subprocess.Popen[bytes]] = []
    with servers.proxy(f"http://{address}", rtt_ms=FAR_MS) as far:

        def come(text: str) -> None:
            say(text)
            if not text.startswith("waiting"):
                return
            # Of stores they know what they are told.
            known = {**os.environ, "SWATHE_DATABASE": f"sqlite:///{links.FOLDER}/nothing.sqlite"}
            for where, clock in ((address, {}), (far.host, wrong or {})):
                command = [sys.executable, "-m", "swathe.cli", "bench", "join", where]
                lent.append(subprocess.Popen(command, env=known | clock))

        try:
            study = ramp(replace(settings, listen=address, hosts=2), links.FOLDER, come)
            for each in lent:
                if each.wait(timeout=60):
                    raise RuntimeError(f"bench join: ended with {each.returncode}")
        finally:
            for each in lent:
                each.kill()
                each.wait()
    study.circumstances["ahead_s"] = AHEAD_S if wrong else 0.0
    return study


def reductions(at: Places) -> list[Study]:
    """Light and heavy mixes on local files and over the LAN."""
    settings = LoadSettings(
        stores=(LOCAL, "nginx-lan"),
        workers=at.choose((1, 2, 4, 8), (1, 2)),
        level_s=at.choose(4.0, 0.5),
        interval_s=at.choose(0.25, 0.1),
        depth=at.choose(20, 2),
        **at.common,
    )
    return [load(settings, links.FOLDER, say)]


def buffers(at: Places) -> list[Study]:
    """The read-buffer study of every store."""
    frame = "frame-000001.fit"
    stores = tuple(f"{store}:{frame}" for store in at.stores)
    settings = BufferSettings(stores=stores, repeats=at.choose(5, 1), budget_s=at.choose(6.0, 0.5))
    return [buffer(settings, None, say)]


EXPERIMENTS = dict(
    zip(
        NAMES,
        (one_client, region_sizes, clients_join, several_hosts, reductions, buffers),
        strict=True,
    )
)


def say(text: str) -> None:
    """Tell what is under way."""
    print(f"  {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def places(sample: Path, frames: int, short: bool) -> Iterator[Places]:
    """Serve the frames in every way."""
    used = links.FOLDER / "frames"
    used.mkdir()
    for number in range(1, frames + 1):
        for path in sample.glob(f"frame-{number:06}.*"):
            # No link: a portal does not follow those that lead out of a store.
            shutil.copy(path, used / path.name)
    with contextlib.ExitStack() as stack:
        database = os.environ["SWATHE_DATABASE"]
        (links.FOLDER / "portal").mkdir()
        settings = register(links.FOLDER / "portal", used)
        command = ["-m", "swathe.cli", "portal", "serve", "--config", str(settings)]
        serve = [*command, "--port", "0", "--json"]
        portal = stack.enter_context(running([sys.executable, *serve]))
        os.environ["SWATHE_DATABASE"] = database
        with Catalog.open() as catalog:
            catalog.add_store(LOCAL, str(used))
        remote = {link.id: stack.enter_context(links.reach(link, used)) for link in LINKS}
        yield Places(remote, portal.url, frames, short)


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
    results = BUILD / ("experiments-short" if arguments.short else "experiments")
    with places(arguments.sample, frames, arguments.short) as at:
        for name in arguments.only or NAMES:
            started = time.perf_counter()
            say(f"{name} ...")
            studies = EXPERIMENTS[name](at)
            for before in results.glob(f"{name}-*"):
                shutil.rmtree(before)
            for number, study in enumerate(studies, 1):
                print("\n".join([*study.sentences, *study.notes]))
                folder = keep(study, results / f"{name}-{number}")
                small_figures(study, FIGURES[name], folder / "small")
            say(f"{name}: {time.perf_counter() - started:.0f} s")
    output = arguments.output or (results / "page" if arguments.short else DOCS)
    make_page(results, output)


def make_page(results: Path, output: Path) -> None:
    """Make the page of what is kept, if something is of every part."""
    folders = {name: sorted(results.glob(f"{name}-*")) for name in NAMES}
    if missing := [name for name, of in folders.items() if not of]:
        print(f"no page: nothing is kept of {', '.join(missing)}; run them with --only, or all")
        return
    output.mkdir(parents=True, exist_ok=True)
    found = {name: [read_back(folder) for folder in of] for name, of in folders.items()}
    (output / "README.md").write_text(experiments_page.page(found))
    for before in (path for name in NAMES for path in output.glob(f"{name}-*.png")):
        before.unlink()
    for folder in (folder for of in folders.values() for folder in of):
        for picture in (folder / "small").glob("*.png"):
            shutil.copy(picture, output / f"{folder.name}-{picture.name}")
    print(output / "README.md")


def read_back(folder: Path) -> Study:
    """Read what the page is made of."""
    table, _ = read_result(folder)
    meta = table.meta
    study = Study(meta["experiment"], "", meta["settings"], meta["circumstances"], table, [])
    study.sentences, study.notes = meta["sentences"], meta["notes"]
    return study


FIGURES = {
    "single": ("overview",),
    "region": ("regions",),
    "ramp": ("ramp-1", "ramp-2", "ramp-3"),
    "hosts": ("ramp-1",),
    "load": ("load-1-light", "load-2-heavy"),
    "buffer": ("buffer-1", "buffer-3"),
}
"""Those that are kept with the page."""


def small_figures(study: Study, names: Iterable[str], folder: Path) -> None:
    """Keep some figures of a study, as PNG of few colours."""
    from PIL import Image

    folder.mkdir(exist_ok=True)
    for name in names:
        if name in study.figures:
            drawn = io.BytesIO()
            study.figures[name].savefig(drawn, format="png", dpi=60)
            picture = Image.open(drawn).convert("RGB").quantize(48)
            picture.save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(links.FOLDER, ignore_errors=True)
