"""The comparisons by name: races against rivals, and what single calls and starts cost.

Unless a docstring says otherwise: boxes of 100 x 100 pixels, input in the page cache, output to
a memory disk where there is one, one thread, and rates compared where a slow peer is given
fewer cuts. "Cold" means that Swathe's kept index is emptied before every run, "warm" that it
was filled by an untimed run over the same list.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contenders import (
    Contender,
    ContenderError,
    Figure,
    Goal,
    Inputs,
    Runner,
    Target,
    interleave,
    median_ratio,
)

HERE = Path(__file__).parent
ARCHIVES = (".zip", ".tar", ".fits")
BYTES_PER_CUT = 36_864  # a cut of 100x100x2 bytes with its header, in whole pages
MODULES = {"zlib-ng": "zlib_ng"}
PROGRAMS = ("floor", "cfitsio")


@dataclass(frozen=True)
class Rival:
    """Whom Swathe is compared with; `times` multiplies the rival's rate first."""

    contender: Contender
    goal: Goal | None = None
    times: float = 1.0


def floor(goal: Goal | None = None, threads: int = 1, times: float = 1.0) -> Rival:
    """Bare C floor, which knows where the pixels are."""
    name = f"floor, {threads} thread{'s' * (threads > 1)}"
    return Rival(Contender(name, ("{work}/floor",), (str(threads),), bare=True), goal, times)


def cfitsio(goal: Goal | None = None, keep_open: bool = False, files: int | None = None) -> Rival:
    """fits_copy_image_section, opening the file for each cut or once."""
    rival = peer("cfitsio-once" if keep_open else "cfitsio-anew", goal, files)
    name = "cfitsio, file kept open" if keep_open else "cfitsio, opened per cut"
    return Rival(replace(rival.contender, name=name), goal)


def peer(
    name: str,
    goal: Goal | None = None,
    files: int | None = None,
    per_file: int | None = None,
    slow: bool = False,
) -> Rival:
    """One of peers.py; the slow ones take seconds a cut."""
    before = (sys.executable, str(HERE / "peers.py"), name)
    after = ("--work", "{work}")
    bare = name in ("indexed_gzip", "rapidgzip")
    writes = not name.startswith(("gzip-", "zlib-"))
    return Rival(
        Contender(name, before, after, files, per_file, slow=slow, writes=writes, bare=bare), goal
    )


@dataclass
class Bench:
    """What the comparisons share.

    Attributes
    ----------
    smoke
        Whether everything is tiny, to show that it works.

    """

    inputs: Inputs
    runner: Runner
    smoke: bool

    def size(self, full: int, smoke: int = 2) -> int:
        """Choose the number for a full run or for a smoke test."""
        return smoke if self.smoke else full

    def swathe(
        self, mode: str, index: str, cold: bool, threads: int = 1, output: str = ""
    ) -> Contender:
        """Swathe itself, in a fresh process, with an index folder of this benchmark."""
        warmup = self.inputs.files("plain", 1)[0].with_name("warm-up.fit")
        if not warmup.exists():
            shutil.copyfile(self.inputs.files("plain", 1)[0], warmup)
        before = (sys.executable, str(HERE / "subject.py"), mode)
        after = ("--warmup", str(warmup), "--threads", str(threads), "--output", output)
        folder = self.runner.work / "index" / index
        writes = mode == "batch" and not output
        return Contender(output or "swathe", before, after, index=folder, cold=cold, writes=writes)

    def missing(self, contender: Contender) -> str:
        """Why a rival cannot run, or nothing."""
        name = contender.name.split(",")[0]
        if self.smoke and contender.slow:
            return "left out of the smoke test"
        if name in PROGRAMS:
            return "" if (self.runner.work / name).exists() else f"{name} was not built"
        module = MODULES.get(name, name.split("-")[0])
        return "" if importlib.util.find_spec(module) else f"{module} is not installed"


def race(
    bench: Bench,
    name: str,
    subject: Contender,
    rivals: Sequence[Rival],
    targets: Sequence[Target],
    as_time: bool = False,
) -> list[Figure]:
    """Check the pixels of everyone, fill a warm index, time all in turn.

    Raises
    ------
    ContenderError
        If Swathe fails or its pixels differ from astropy's. A rival that fails is left out,
        with a note.

    """
    checked = replace(subject, after=(*subject.after, "--check"), writes=True)
    bench.runner.verify(checked, targets)
    reasons = {
        rival.contender.name: reason_left_out(bench, rival.contender, targets) for rival in rivals
    }
    able = [rival.contender for rival in rivals if not reasons[rival.contender.name]]
    if not subject.cold:
        bench.runner.output(subject, targets)
    seconds = bench.runner.rounds([subject, *able], targets)
    ours = seconds[subject.name]
    figures = []
    for rival in rivals:
        against = rival.contender.name
        if reason := reasons[against]:
            figures.append(Figure(name, against, None, goal=rival.goal, note=reason))
        else:
            figures.append(judge(name, ours, seconds[against], rival, as_time))
    return figures


def reason_left_out(bench: Bench, contender: Contender, targets: Sequence[Target]) -> str:
    """Why a rival is left out: missing, failing, or other pixels than astropy's."""
    if reason := bench.missing(contender):
        return reason
    try:
        bench.runner.verify(contender, targets)
    except ContenderError as error:
        return " ".join(str(error).split()) or "failed"
    return ""


def judge(name: str, ours: list[float], theirs: list[float], rival: Rival, as_time: bool) -> Figure:
    """Figure for one rival: how many times as fast, or how many times the time."""
    against = rival.contender.name + (f" (x{rival.times:g})" if rival.times != 1 else "")
    if as_time:
        value, unit = median_ratio(ours, theirs), "x the time"
    else:
        value, unit = median_ratio(theirs, ours) / rival.times, "x as fast"
    return Figure(name, against, value, unit, rival.goal, ours, theirs)


@dataclass(frozen=True)
class Race:
    """A race of Swathe against rivals over the same targets, cuts of some files.

    Attributes
    ----------
    mode
        `batch` is `cut_many` over the list, `single` one `cut` after the other.
    smoke_files
        Of the smoke test.
    as_time
        Whether times of a file are compared, not rates.

    """

    name: str
    kind: str
    files: int
    cuts: int
    rivals: Sequence[Rival]
    cold: bool = True
    mode: str = "batch"
    smoke_files: int = 2
    as_time: bool = False

    def __call__(self, bench: Bench) -> list[Figure]:
        """Run it."""
        files = bench.size(self.files, self.smoke_files)
        targets = bench.inputs.targets(self.kind, files, self.cuts)
        subject = bench.swathe(self.mode, self.name, self.cold)
        return race(bench, self.name, subject, self.rivals, targets, self.as_time)


def many(bench: Bench) -> list[Figure]:
    """100,000 cuts from 400 plain frames, two threads: twice the one-thread floor.

    Fewer cuts a frame where the output folder has too little room; the name says how many.
    """
    targets = many_targets(bench, bench.size(400))
    rivals = [floor(Goal(">=", 0.5), times=2), floor(threads=2)]
    subject = bench.swathe("batch", "many", cold=True, threads=2)
    return race(bench, f"{len(targets):,} cuts, 2 threads", subject, rivals, targets)


def many_targets(bench: Bench, files: int) -> list[Target]:
    """Return 100,000 targets on `files` plain frames, or fewer if their cuts find no room."""
    bench.inputs.files("plain", files)  # before the room is measured
    room = shutil.disk_usage(bench.runner.work).free // 2 // BYTES_PER_CUT
    cuts = min(bench.size(-(-100_000 // files), 10), max(1, room // files))
    return bench.inputs.targets("plain", files, cuts)


def archives(bench: Bench) -> list[Figure]:
    """100,000 cuts from 50 plain frames, two threads, into each kind of archive and a folder."""
    targets = many_targets(bench, bench.size(50))
    kinds = [bench.swathe("batch", "archives", True, 2, f"out{end}") for end in ARCHIVES]
    folder = replace(bench.swathe("batch", "archives", cold=True, threads=2), name="folder")
    figures = []
    bench.runner.verify(folder, targets)
    seconds = bench.runner.rounds([folder, *kinds], targets)
    for kind, end in zip(kinds, ARCHIVES, strict=True):
        ours = seconds[kind.name]
        name = f"{len(targets):,} cuts into {end}"
        figures.append(judge(name, ours, seconds["folder"], Rival(folder), False))
    return figures


def one_call(bench: Bench) -> list[Figure]:
    """`swathe.cut` of one box, warm index, less the native open and cut below it [< 0.5 ms]."""
    figures = []
    for kind in ("plain", "gz"):
        targets = bench.inputs.targets(kind, bench.size(40), 10)
        calls = bench.swathe("calls", f"calls-{kind}", cold=False)
        bench.runner.output(calls, targets)  # fills the index
        rounds = [
            json.loads(bench.runner.output(calls, targets)) for _ in range(bench.runner.repeats)
        ]
        ours, native = ([each[name] for each in rounds] for name in ("cut", "native"))
        extra_ms = statistics.median(a - b for a, b in zip(ours, native, strict=True)) * 1e3
        goal = Goal("<", 0.5)
        name = f"one call, {kind}"
        figures.append(Figure(name, "native call", extra_ms, "ms more", goal, ours, native))
    return figures


def startup(bench: Bench) -> list[Figure]:
    """Fresh processes: `import swathe` less `pass` [< 150 ms], `swathe --help` [< 300 ms]."""
    script = Path(sys.executable).with_name("swathe")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "swathe"]
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import swathe"],
        "help": [*program, "--help"],
    }
    runs = {name: starter(command) for name, command in commands.items()}
    seconds = interleave(runs, bench.size(10, 3))
    bare, imported, help_s = seconds["pass"], seconds["import"], seconds["help"]
    import_ms = statistics.median(a - b for a, b in zip(imported, bare, strict=True)) * 1e3
    help_ms = statistics.median(help_s) * 1e3
    below = "python -c pass"
    shown_as = " ".join([Path(program[0]).name, *program[1:], "--help"])
    return [
        Figure("import swathe", below, import_ms, "ms more", Goal("<", 150), imported, bare),
        Figure(shown_as, "", help_ms, "ms", Goal("<", 300), help_s),
    ]


def starter(command: list[str]) -> Callable[[], float]:
    """Run that times one fresh process.

    Raises
    ------
    ContenderError
        If the process fails.

    """

    def run() -> float:
        start = time.perf_counter()
        process = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise ContenderError(f"{' '.join(command)}: {process.stderr[-500:]}")
        return seconds

    return run


TILE_RIVALS = (cfitsio(Goal(">=", 1)), cfitsio(keep_open=True))
COMPARISONS: dict[str, Callable[[Bench], list[Figure]]] = {
    "plain": Race("plain", "plain", 400, 10, (
        floor(Goal(">=", 0.6)),
        cfitsio(Goal(">=", 2.5)),
        cfitsio(keep_open=True),
        peer("fitsio", files=100),
        peer("rustfits", files=100),
        peer("astropy-keep-open", files=5),
        peer("astropy-section", files=5),
    )),
    "many": many,
    "archives": archives,
    # Seekable gzip readers, whose indices are kept too.
    "gz_index": Race("gz, warm index", "gz", 400, 1, (
        cfitsio(Goal(">=", 15), files=20),
        peer("indexed_gzip", files=100),
        peer("rapidgzip", files=100),
    ), cold=False),
    # The program is started for every file, as a user would; the same in one call is shown too.
    "gz_first_touch": Race("gz, first touch", "gz", 40, 1, (
        peer("gzip-program", Goal("<=", 1.3)),
        peer("gzip-program-at-once"),
        peer("gzip-python"),
        peer("zlib-ng"),
    ), mode="single", as_time=True),
    "gz_batch": Race("gz, 10 a file, cold", "gz", 40, 10, (
        cfitsio(Goal(">=", 20), files=2),
        cfitsio(keep_open=True, files=20),
    )),
    # Tiles of a row; of 20 rows with HCOMPRESS.
    "fz_rice": Race("fz RICE_1", "RICE_1", 100, 10, (
        cfitsio(Goal(">=", 4)),
        cfitsio(keep_open=True),
        peer("fitsio", files=20),
        peer("rustfits", files=20),
        peer("astropy-section", files=2),
    )),
    "fz_hcompress": Race("fz HCOMPRESS_1", "HCOMPRESS_1", 40, 10, TILE_RIVALS),
    "fz_gzip1": Race("fz GZIP_1", "GZIP_1", 40, 10, TILE_RIVALS),
    "fz_gzip2": Race("fz GZIP_2", "GZIP_2", 40, 10, TILE_RIVALS),
    "fz_plio": Race("fz PLIO_1", "PLIO_1", 40, 10, TILE_RIVALS),
    "bz2_single": Race("bz2, warm index", "bz2", 40, 1, (
        peer("astropy-reopen", Goal(">=", 10), files=2, slow=True),
        cfitsio(files=4),
    ), cold=False, smoke_files=1),
    # astropy inflates a file for each cut, or once for its ten cuts.
    "bz2_ten": Race("bz2, 10 a file, warm", "bz2", 20, 10, (
        peer("astropy-reopen", Goal(">=", 10), files=1, per_file=2, slow=True),
        peer("astropy-keep-open", files=1, slow=True),
    ), cold=False, smoke_files=1),
    "one_call": one_call,
    "startup": startup,
}  # fmt: skip
