"""Single-client experiment: seconds of each stage, by store, method, crops per image and client."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swathe.core.errors import NotFoundError, SettingsError, SourceError
from swathe.experiments.clients.frames_in_store import (
    FramesInStore,
    child,
    environment,
    frames_in_stores,
    warm_up_image,
)
from swathe.experiments.clients.single_client import STAGES
from swathe.experiments.results.environment_record import circumstances
from swathe.experiments.results.result import Study
from swathe.experiments.settings import SingleSettings, plain
from swathe.experiments.statistics import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from astropy.table import Table

OURS = ("swathe", "swathe-indexed")
FSSPEC = "astropy-fsspec"
MODULES = {"fitsio": ("fitsio",), "astropy": ("astropy",), FSSPEC: ("fsspec", "aiohttp")}
"""Modules of peers that are Python packages."""
SOURCE = Path(__file__).with_name("cfitsio.c")
MANY = 100
PATIENCE_S = 120.0
"""Seconds beyond its budget that a case may take for one image."""
SHOWN_ROWS = 3000
"""Samples kept of each case."""


class SingleCase(NamedTuple):
    """A case of the experiment."""

    store: str
    method: str
    crops: int
    client: str

    @property
    def name(self) -> str:
        """Name in one line."""
        return f"{self.store} {self.method} x{self.crops} {self.client}"


def single(
    settings: SingleSettings, scratch: Path | None = None, tell: Callable[[str], None] | None = None
) -> Study:
    """Run the experiment.

    Args:
        settings: settings of the experiment.
        scratch: folder for images and crops; by default the system's temporary folder.
        tell: called with the progress, and with the cases that are left out.

    Raises:
        SettingsError: If no client can run any case.
        SwatheError: If a store cannot be read by us; peers that fail are left out.
    """
    say = tell or (lambda _text: None)
    with (
        tempfile.TemporaryDirectory(prefix="swathe-single-", dir=scratch) as name,
        frames_in_stores(settings, Path(name)) as stores,
    ):
        conditions = circumstances(settings.stores)
        folder = Path(name)
        possible = [
            client
            for client in settings.clients
            if any(
                is_supported(client, method, place)
                for method in settings.methods
                for place in stores
            )
        ]
        program, notes = check_clients(possible, folder)
        cases = _cases(settings, stores, [client for client in possible if client not in notes])
        if not cases:
            why = "".join(f"; {client}: {reason}" for client, reason in notes.items())
            raise SettingsError(f"single.clients: none of them can run any case{why}")
        groups = _groups(cases)
        results = _CaseRows(cases, _CaseRunner(settings, folder, program), notes, say)
        for turn in range(settings.repeats):
            say(f"round {turn + 1} of {settings.repeats}: {len(cases)} cases")
            # Each round begins with another case, so that a slow minute affects all.
            first = turn * len(groups) // settings.repeats
            for group in groups[first:] + groups[:first]:
                results.run(group, turn)
    return _study(settings, conditions, results.rounds(), results.left_out())


def is_supported(client: str, method: str, place: FramesInStore) -> bool:
    """Check whether a client supports a method: fsspec is for sections of images on servers."""
    return client != FSSPEC or (place.folder is None and method in ("FIT", "fz"))


def _cases(
    settings: SingleSettings, stores: Sequence[FramesInStore], clients: Sequence[str]
) -> dict[SingleCase, FramesInStore]:
    """Return the cases, and the store of each one's images."""
    return {
        SingleCase(place.label, method, crops, client): place
        for place in stores
        for method in settings.methods
        for crops in settings.crops
        for client in clients
        if is_supported(client, method, place)
    }


def _groups(cases: Iterable[SingleCase]) -> list[list[SingleCase]]:
    """Return the cases that share a process: ours run alone, as Swathe caches what it learns."""
    groups: list[list[SingleCase]] = []
    others: dict[str, list[SingleCase]] = defaultdict(list)
    for case in cases:
        if case.client in OURS:
            groups.append([case])
        else:
            others[case.client].append(case)
    return groups + list(others.values())


def check_clients(clients: Sequence[str], folder: Path) -> tuple[str, dict[str, str]]:
    """Compile the C program if needed; return its path, and why some clients cannot run."""
    reasons = {
        client: f"the Python package {module} is not installed"
        for client in clients
        for module in MODULES.get(client, ())
        if importlib.util.find_spec(module) is None
    }
    if "cfitsio" not in clients:
        return "", reasons
    try:
        return str(build_cfitsio(folder)), reasons
    except NotFoundError as error:
        return "", {**reasons, "cfitsio": str(error)}


def build_cfitsio(folder: Path) -> Path:
    """Compile the C program that cuts with cfitsio; return its path.

    Raises:
        NotFoundError: If there is no compiler, or no cfitsio.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotFoundError("there is no C compiler")
    program = folder / "cfitsio"
    command = [compiler, "-O2", "-o", str(program), str(SOURCE), "-lcfitsio", "-lm"]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        if "fitsio" in process.stderr:
            raise NotFoundError("libcfitsio with its header is not installed")
        raise NotFoundError((process.stderr.strip().splitlines() or ["the compiler failed"])[-1])
    return program


class _CaseRows:
    """Rows of the cases, round by round, and reasons for cases left out."""

    def __init__(
        self,
        cases: dict[SingleCase, FramesInStore],
        runs: _CaseRunner,
        unable: dict[str, str],
        say: Callable[[str], None],
    ) -> None:
        """Take the cases, their runner, the unavailable clients, and the progress callback."""
        self._cases, self._runs, self._say = cases, runs, say
        self._rows: dict[SingleCase, list[list[list[float]]]] = defaultdict(list)
        self._clients, self._reasons = unable, dict[SingleCase, str]()

    def _is_out(self, case: SingleCase) -> bool:
        return case in self._reasons or case.client in self._clients

    def run(self, group: Sequence[SingleCase], turn: int) -> None:
        """Run the cases of one client once more, except those left out."""
        client = group[0].client
        due = {case: self._cases[case] for case in group if not self._is_out(case)}
        try:
            answers = self._runs.run(due, turn)
        except SourceError as error:
            if client in OURS:
                raise
            # It crashed or did not end: its earlier rows are of other rounds than ours.
            self._clients[client] = str(error)
            self._say(f"{client}: left out: {error}")
            return
        for case, answer in answers.items():
            if "rows" in answer:
                self._rows[case].append(answer["rows"])
                continue
            if client in OURS and not answer["error"].startswith("NotFoundError"):
                raise SourceError(f"{case.name}: {answer['error']}")
            self._reasons[case] = answer["error"]
            self._say(f"{case.name}: left out: {answer['error']}")

    def rounds(self) -> dict[SingleCase, list[list[list[float]]]]:
        """Return the rows of each round, for cases that ran in all rounds."""
        return {
            case: self._rows[case]
            for case in self._cases
            if not self._is_out(case) and self._rows[case]
        }

    def left_out(self) -> list[str]:
        """Return which clients and cases were left out, and why."""
        clients = [f"{client}: left out: {why}" for client, why in self._clients.items()]
        return clients + [f"{case.name}: left out: {why}" for case, why in self._reasons.items()]


class _CaseRunner:
    """Runs cases of one client in a process of their own."""

    def __init__(self, settings: SingleSettings, folder: Path, program: str) -> None:
        self.settings, self.folder, self.program = settings, folder, program
        self.warm_up = warm_up_image(folder)

    def run(
        self, cases: dict[SingleCase, FramesInStore], turn: int
    ) -> dict[SingleCase, dict[str, Any]]:
        """Run the cases once; return for each the rows of `single_client.work`, or an error."""
        if not cases:
            return {}
        first = next(iter(cases))
        ours = first.client in OURS
        order: dict[str, Any] = {
            "client": "swathe" if ours else first.client,
            "cases": [self._case(case, place, turn) for case, place in cases.items()],
            "warm_up": self.warm_up,
            "out": str(self.folder / "out"),
            "scratch": str(self.folder / "scratch"),
            "program": self.program,
        }
        index = self.folder / "index" / "new"
        if first.client == "swathe-indexed":
            index = index.with_name(f"kept-{first.method}")
        else:
            shutil.rmtree(index, ignore_errors=True)
        limit = len(cases) * (self.settings.budget_s + PATIENCE_S)
        variables = environment(index)
        if first.client == "swathe-indexed":
            # One untimed run; only the images it reached are timed.
            learning = {**order, "cases": [{**case, "whole": True} for case in order["cases"]]}
            answers = child("swathe.experiments.clients.single_client", learning, variables, limit)
            for case, answer in zip(order["cases"], answers, strict=True):
                if "rows" in answer:
                    images = {row[0] for row in answer["rows"]}
                    case["images"] = case["images"][: len(images)]
        answer = child("swathe.experiments.clients.single_client", order, variables, limit)
        return dict(zip(cases, answer, strict=True))

    def _case(self, case: SingleCase, place: FramesInStore, turn: int) -> dict[str, Any]:
        settings = self.settings
        rng = np.random.default_rng([settings.seed, turn])
        numbers = 1 + rng.permutation(settings.frames)[: settings.images]
        files = case.client not in (*OURS, FSSPEC) or case.method == "GUNZIP"
        name = place.file if files else place.frame
        return {
            "method": case.method,
            "copy": files and place.folder is None,
            "images": [
                (name(int(at), case.method), place.boxes(case.crops, settings.size, rng))
                for at in numbers
            ],
            "budget_s": settings.budget_s,
        }


def _study(
    settings: SingleSettings,
    circumstances: dict[str, Any],
    results: dict[SingleCase, list[list[list[float]]]],
    notes: list[str],
) -> Study:
    from swathe.experiments.results import figures

    times = {case: np.array([row[1:] for turn in rounds for row in turn])
             for case, rounds in results.items()}  # fmt: skip
    table = stage_table(times)
    samples = [
        (case.name, turn, sum(row[1:]), "s", "lower")
        for case, rounds in results.items()
        for turn, rows in enumerate(rounds)
        for row in rows[: max(1, SHOWN_ROWS // len(rounds))]
    ]
    fast = speed_ups(times)
    return Study(
        "single",
        f"One client: crops of {settings.size} x {settings.size} pixels",
        plain(settings),
        circumstances,
        table,
        samples,
        {
            "overview": figures.overview(times),
            "speed-ups": figures.speed_ups(fast),
            "boxes": figures.boxes(times),
            "stages": figures.stage_shares(times),
        },
        sentences(times),
        notes,
        {f"Median total of a crop, and {MANY} crops of different images": overview_table(times),
         "How many times as fast as each client": fast},
    )  # fmt: skip


def stage_table(times: dict[SingleCase, Any]) -> Table:
    """Return a row for each case and stage, in milliseconds per crop."""
    from astropy.table import Table

    rows = []
    for case, stages in times.items():
        columns = dict(zip(STAGES, stages.T, strict=True)) | {"total": stages.sum(axis=1)}
        for stage, seconds in columns.items():
            rows.append({**case._asdict(), "stage": stage, **asdict(summary(1e3 * seconds))})
    table = Table(rows=rows)
    for name in ("min", "q1", "mean", "median", "q3", "max", "std"):
        table[name].unit = "ms"
    return table


def overview_table(times: dict[SingleCase, Any]) -> Table:
    """Return the median total of each case, and the time for a hundred crops."""
    from astropy.table import Table

    rows = []
    for case, stages in times.items():
        total = stages.sum(axis=1)
        rows.append(
            {
                **case._asdict(),
                "median": 1e3 * float(np.median(total)),
                "hundred": MANY * float(total.mean()),
            }
        )
    return Table(rows=rows, units={"median": "ms", "hundred": "s"})


def speed_ups(times: dict[SingleCase, Any]) -> Table:
    """Return the speed-up of `swathe` over each other client, by medians."""
    from astropy.table import Table

    rows = []
    for case, stages in times.items():
        ours = times.get(case._replace(client="swathe"))
        if ours is None or case.client == "swathe":
            continue
        ratio = np.median(stages.sum(axis=1)) / np.median(ours.sum(axis=1))
        rows.append({**case._asdict(), "swathe_is": float(ratio)})
    if rows:
        return Table(rows=rows)
    return Table(
        names=("store", "method", "crops", "client", "swathe_is"), dtype=(str, str, int, str, float)
    )


def sentences(times: dict[SingleCase, Any]) -> list[str]:
    """Return the findings in words, store by store."""
    median = {case: 1e3 * float(np.median(stages.sum(axis=1))) for case, stages in times.items()}
    texts = []
    for store in dict.fromkeys(case.store for case in times):
        for crops in dict.fromkeys(case.crops for case in times):
            ours = {
                case.method: ms
                for case, ms in median.items()
                if (case.store, case.crops, case.client) == (store, crops, "swathe")
            }
            if ours:
                best = min(ours, key=lambda method: ours[method])
                text = ", ".join(f"{method} {ms:.3g} ms" for method, ms in ours.items())
                each = f"{crops} crop{'s' if crops != 1 else ''} an image"
                texts.append(f"{store}, {each}, swathe: {text}; {best} is fastest.")
    return texts
