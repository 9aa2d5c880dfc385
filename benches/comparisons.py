"""The comparisons, one function each.

Unless a docstring says otherwise: boxes of 100 x 100 pixels, input in the page cache, output to
a memory disk where there is one, one thread, and rates compared where a slow peer is given
fewer cuts. "Cold" means that Swathe's kept index is emptied before every run, "warm" that it
was filled by an untimed run over the same list. Targets stand in square brackets.
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

from inputs import Inputs
from report import Figure, Goal
from targets import Target
from timing import Contender, ContenderError, Runner, interleave, median_ratio

HERE = Path(__file__).parent
BYTES_PER_CUT = 36_864  # a cut of 100x100x2 bytes with its header, in whole pages
MODULES = {"zlib-ng": "zlib_ng"}


@dataclass(frozen=True)
class Rival:
    """Whom Swathe is compared with; `times` multiplies the rival's rate first."""

    contender: Contender
    goal: Goal | None = None
    times: float = 1.0


@dataclass
class Bench:
    """What the comparisons share.

    Attributes
    ----------
    programs
        The C programs that could be built, by name.
    smoke
        Whether everything is tiny, to show that it works.

    """

    inputs: Inputs
    runner: Runner
    programs: dict[str, Path]
    smoke: bool

    def size(self, full: int, smoke: int = 2) -> int:
        """Choose the number for a full run or for a smoke test."""
        return smoke if self.smoke else full

    def swathe(self, mode: str, index: str, cold: bool, threads: int = 1) -> Contender:
        """Swathe itself, in a fresh process, with an index folder of this benchmark."""
        warmup = self.inputs.files("plain", 1)[0].with_name("warm-up.fit")
        if not warmup.exists():
            shutil.copyfile(self.inputs.files("plain", 1)[0], warmup)
        before = (sys.executable, str(HERE / "subject.py"), mode)
        after = ("--warmup", str(warmup), "--threads", str(threads))
        folder = self.runner.work / "index" / index
        return Contender("swathe", before, after, index=folder, cold=cold, writes=mode == "batch")

    def floor(self, threads: int = 1) -> Contender:
        """Bare C floor, which knows where the pixels are."""
        name = f"floor, {threads} thread{'s' * (threads > 1)}"
        return Contender(name, (self._program("floor"),), (str(threads),), bare=True)

    def cfitsio(self, keep_open: bool = False, files: int | None = None) -> Contender:
        """fits_copy_image_section, opening the file for each cut or once."""
        name = "cfitsio, file kept open" if keep_open else "cfitsio, opened per cut"
        options = ("--keep-open",) if keep_open else ()
        before = (self._program("cfitsio"), *options)
        return Contender(name, before, files=self._few(files))

    def peer(
        self,
        name: str,
        files: int | None = None,
        per_file: int | None = None,
        slow: bool = False,
    ) -> Contender:
        """One of peers.py; the slow ones take seconds a cut."""
        before = (sys.executable, str(HERE / "peers.py"), name)
        after = ("--index-dir", str(self.runner.work / "peer-index"))
        bare = name in ("indexed_gzip", "rapidgzip")
        writes = not name.startswith(("gzip-", "zlib-"))
        few = self._few(files)
        return Contender(name, before, after, few, per_file, slow=slow, writes=writes, bare=bare)

    def missing(self, contender: Contender) -> str:
        """Why a rival cannot run, or nothing."""
        program = contender.before[0]
        if self.smoke and contender.slow:
            return "left out of the smoke test"
        if not program:
            return f"{contender.name.split(',')[0]}.c was not built"
        if program != sys.executable:
            return ""
        module = MODULES.get(contender.name, contender.name.split("-")[0])
        return "" if importlib.util.find_spec(module) else f"{module} is not installed"

    def _program(self, name: str) -> str:
        return str(self.programs.get(name, ""))

    def _few(self, files: int | None) -> int | None:
        return 1 if self.smoke and files else files


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
    reasons = {rival.contender.name: unable(bench, rival.contender, targets) for rival in rivals}
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


def unable(bench: Bench, contender: Contender, targets: Sequence[Target]) -> str:
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


def plain(bench: Bench) -> list[Figure]:
    """`cut_many`, 400 plain frames x 10 cuts, cold: floor [>= 0.6], cfitsio [>= 2.5], others."""
    rivals = [
        Rival(bench.floor(), Goal(">=", 0.6)),
        Rival(bench.cfitsio(), Goal(">=", 2.5)),
        Rival(bench.cfitsio(keep_open=True)),
        Rival(bench.peer("fitsio", files=100)),
        Rival(bench.peer("rustfits", files=100)),
        Rival(bench.peer("astropy-keep-open", files=5)),
        Rival(bench.peer("astropy-section", files=5)),
    ]
    targets = bench.inputs.targets("plain", bench.size(400), 10)
    return race(bench, "plain", bench.swathe("batch", "plain", cold=True), rivals, targets)


def gz_index(bench: Bench) -> list[Figure]:
    """`cut_many`, 400 gzip files x 1 cut, warm index: cfitsio [>= 15], seekable gzip readers."""
    rivals = [
        Rival(bench.cfitsio(files=20), Goal(">=", 15)),
        Rival(bench.peer("indexed_gzip", files=100)),
        Rival(bench.peer("rapidgzip", files=100)),
    ]
    targets = bench.inputs.targets("gz", bench.size(400), 1)
    return race(bench, "gz, warm index", bench.swathe("batch", "gz", cold=False), rivals, targets)


def gz_first_touch(bench: Bench) -> list[Figure]:
    """`cut`, 40 gzip files x 1 cut, cold, time per file: `gzip -dc` [<= 1.3], other inflaters.

    The program is started for every file, as a user would; the same in one call is shown too.
    """
    rivals = [
        Rival(bench.peer("gzip-program"), Goal("<=", 1.3)),
        Rival(bench.peer("gzip-program-at-once")),
        Rival(bench.peer("gzip-python")),
        Rival(bench.peer("zlib-ng")),
    ]
    targets = bench.inputs.targets("gz", bench.size(40), 1)
    subject = bench.swathe("single", "gz-first", cold=True)
    return race(bench, "gz, first touch", subject, rivals, targets, as_time=True)


def gz_batch(bench: Bench) -> list[Figure]:
    """`cut_many`, 40 gzip files x 10 cuts, cold: cfitsio opening for each cut [>= 20]."""
    rivals = [
        Rival(bench.cfitsio(files=2), Goal(">=", 20)),
        Rival(bench.cfitsio(keep_open=True, files=20)),
    ]
    targets = bench.inputs.targets("gz", bench.size(40), 10)
    subject = bench.swathe("batch", "gz-batch", cold=True)
    return race(bench, "gz, 10 a file, cold", subject, rivals, targets)


def fz_rice(bench: Bench) -> list[Figure]:
    """`cut_many`, 100 RICE_1 files x 10 cuts, tiles of a row, cold: cfitsio [>= 4], others."""
    rivals = [
        Rival(bench.cfitsio(), Goal(">=", 4)),
        Rival(bench.cfitsio(keep_open=True)),
        Rival(bench.peer("fitsio", files=20)),
        Rival(bench.peer("rustfits", files=20)),
        Rival(bench.peer("astropy-section", files=2)),
    ]
    targets = bench.inputs.targets("RICE_1", bench.size(100), 10)
    return race(bench, "fz RICE_1", bench.swathe("batch", "RICE_1", cold=True), rivals, targets)


def fz_hcompress(bench: Bench) -> list[Figure]:
    """`cut_many`, 40 HCOMPRESS_1 files x 10 cuts, lossless tiles of 20 rows: cfitsio [>= 1]."""
    return fz_other(bench, "HCOMPRESS_1")


def fz_gzip1(bench: Bench) -> list[Figure]:
    """`cut_many`, 40 GZIP_1 files x 10 cuts, tiles of a row, cold: cfitsio [>= 1]."""
    return fz_other(bench, "GZIP_1")


def fz_gzip2(bench: Bench) -> list[Figure]:
    """`cut_many`, 40 GZIP_2 files x 10 cuts, tiles of a row, cold: cfitsio [>= 1]."""
    return fz_other(bench, "GZIP_2")


def fz_plio(bench: Bench) -> list[Figure]:
    """`cut_many`, 40 PLIO_1 masks x 10 cuts, tiles of a row, cold: cfitsio [>= 1]."""
    return fz_other(bench, "PLIO_1")


def fz_other(bench: Bench, codec: str) -> list[Figure]:
    """`cut_many`, 40 files of a codec x 10 cuts, cold: cfitsio [>= 1]."""
    rivals = [
        Rival(bench.cfitsio(), Goal(">=", 1)),
        Rival(bench.cfitsio(keep_open=True)),
    ]
    targets = bench.inputs.targets(codec, bench.size(40), 10)
    return race(bench, f"fz {codec}", bench.swathe("batch", codec, cold=True), rivals, targets)


def bz2_single(bench: Bench) -> list[Figure]:
    """`cut_many`, 40 bzip2 files x 1 cut, warm index: astropy [>= 10], cfitsio."""
    rivals = [
        Rival(bench.peer("astropy-reopen", files=2, slow=True), Goal(">=", 10)),
        Rival(bench.cfitsio(files=4)),
    ]
    targets = bench.inputs.targets("bz2", bench.size(40, 1), 1)
    subject = bench.swathe("batch", "bz2", cold=False)
    return race(bench, "bz2, warm index", subject, rivals, targets)


def bz2_ten(bench: Bench) -> list[Figure]:
    """`cut_many`, 20 bzip2 files x 10 cuts, warm index: astropy opening for each cut [>= 10].

    astropy that inflates a file once for its ten cuts is shown too.
    """
    rivals = [
        Rival(bench.peer("astropy-reopen", files=1, per_file=2, slow=True), Goal(">=", 10)),
        Rival(bench.peer("astropy-keep-open", files=1, slow=True)),
    ]
    targets = bench.inputs.targets("bz2", bench.size(20, 1), 10)
    subject = bench.swathe("batch", "bz2-ten", cold=False)
    return race(bench, "bz2, 10 a file, warm", subject, rivals, targets)


def many(bench: Bench) -> list[Figure]:
    """100,000 cuts from 400 plain frames, two threads: twice the one-thread floor [>= 0.5].

    Fewer cuts a frame where the output folder has too little room; the name says how many.
    """
    files = bench.size(400)
    bench.inputs.files("plain", files)  # before the room is measured
    room = shutil.disk_usage(bench.runner.work).free // 2 // BYTES_PER_CUT
    cuts = min(bench.size(250, 10), max(1, room // files))
    name = f"{files * cuts:,} cuts, 2 threads"
    rivals = [
        Rival(bench.floor(), Goal(">=", 0.5), times=2),
        Rival(bench.floor(threads=2)),
    ]
    subject = bench.swathe("batch", "many", cold=True, threads=2)
    return race(bench, name, subject, rivals, bench.inputs.targets("plain", files, cuts))


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
    bare, imported, shown = seconds["pass"], seconds["import"], seconds["help"]
    import_ms = statistics.median(a - b for a, b in zip(imported, bare, strict=True)) * 1e3
    help_ms = statistics.median(shown) * 1e3
    below = "python -c pass"
    shown_as = " ".join([Path(program[0]).name, *program[1:], "--help"])
    return [
        Figure("import swathe", below, import_ms, "ms more", Goal("<", 150), imported, bare),
        Figure(shown_as, "", help_ms, "ms", Goal("<", 300), shown),
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
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode:
            raise ContenderError(f"{' '.join(command)}: {done.stderr[-500:]}")
        return seconds

    return run


COMPARISONS: dict[str, Callable[[Bench], list[Figure]]] = {
    "plain": plain,
    "many": many,
    "gz_index": gz_index,
    "gz_first_touch": gz_first_touch,
    "gz_batch": gz_batch,
    "fz_rice": fz_rice,
    "fz_hcompress": fz_hcompress,
    "fz_gzip1": fz_gzip1,
    "fz_gzip2": fz_gzip2,
    "fz_plio": fz_plio,
    "bz2_single": bz2_single,
    "bz2_ten": bz2_ten,
    "one_call": one_call,
    "startup": startup,
}
