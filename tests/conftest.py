"""What the tests share: folders and a catalogue of their own, real files, small FITS files."""

from __future__ import annotations

import atexit
import gc
import gzip
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The engine reads this once per process, so it is set before anything can use the engine.
INDEX = tempfile.mkdtemp(prefix="swathe-test-index-")
os.environ["SWATHE_INDEX_DIR"] = INDEX
CATALOG = tempfile.mkdtemp(prefix="swathe-test-catalog-")
os.environ["SWATHE_DATABASE"] = f"sqlite:///{CATALOG}/catalog.sqlite"
# Off but where a test switches them on: most count requests, and files are read twice in some.
BLOCKS = tempfile.mkdtemp(prefix="swathe-test-blocks-")
os.environ["SWATHE_CACHE_DIR"] = BLOCKS
os.environ["SWATHE_CACHE_BYTES"] = "0"
os.environ["SWATHE_MEMORY_BYTES"] = "0"
# Certificates that pools make by themselves.
STATE = tempfile.mkdtemp(prefix="swathe-test-state-")
os.environ["XDG_STATE_HOME"] = STATE
# What compilers made of users' sources.
BUILDS = tempfile.mkdtemp(prefix="swathe-test-builds-")
os.environ["SWATHE_BUILD_DIR"] = BUILDS
# With it no line waits in a buffer; users have it seldom.
os.environ.pop("PYTHONUNBUFFERED", None)
# Shells let what they start in the background ignore Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
for folder in (INDEX, CATALOG, BLOCKS, STATE, BUILDS):
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import sqlalchemy  # noqa: E402
from astropy.io import fits  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

with suppress(ImportError):
    # Before HDF5 looks for a filter: it remembers where it looked first.
    import hdf5plugin  # noqa: F401

from swathe.arrays.indexing import MAGIC  # noqa: E402
from swathe.catalog import Catalog  # noqa: E402
from swathe.jobs import Jobs, Limits  # noqa: E402
from swathe.workers import Runner  # noqa: E402
from tests.support import fits_frames  # noqa: E402
from tests.support.browser import OpenPage, chromium, visiting  # noqa: E402
from tests.support.catalogs import new_catalog  # noqa: E402
from tests.support.cloud_servers import forget_credentials  # noqa: E402
from tests.support.job_runner import running  # noqa: E402
from tests.support.postgres_server import new_database, postgres_server  # noqa: E402
from tests.support.property_examples import ALL, QUICK, THOROUGH  # noqa: E402
from tests.support.required_tests import required_names, without_skip  # noqa: E402
from tests.support.sample_surveys import new_sample  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DATA = Path(
    os.environ.get("SWATHE_TEST_DATA", Path(__file__).parents[2] / "shared" / "data")
).absolute()
BLOCK = 2880
BITPIX = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}

# `new_path` serves a whole session, so examples need not reset it; CI machines vary in speed.
# Everybody's run tries the same examples, fewer than `--hypothesis-profile=thorough`; `explore`
# tries new ones.
for profile, number, same_examples in (
    ("swathe", QUICK, True),
    ("thorough", THOROUGH, True),
    ("explore", ALL, False),
):
    settings.register_profile(
        profile,
        max_examples=number,
        derandomize=same_examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
settings.load_profile("swathe")


MORE = frozenset(
    {
        "algorithms/test_builds",
        "algorithms/test_cwl_runs",
        "algorithms/test_first_session",
        "algorithms/test_trial",
        "attack/test_arguments",
        "attack/test_doors",
        "attack/test_expressions",
        "attack/test_intake",
        "attack/test_pools",
        "attack/test_soak",
        "attack/test_standing",
        "attack/test_store",
        "capi/test_cuts",
        "capi/test_events",
        "capi/test_library",
        "capi/test_reading",
        "capi/test_runs",
        "capi/test_writing",
        "cli/test_demo",
        "costs/test_format_costs",
        "costs/test_probe_gwcs",
        "costs/test_probe_stripe",
        "costs/test_replicas",
        "costs/test_resolve_target",
        "costs/test_store_probe",
        "cutting/test_long_list_memory",
        "cutting/test_long_lists",
        "cutting/test_replica_moves",
        "datasets/test_mirroring",
        "datasets/test_real_places",
        "experiments/test_experiments",
        "files/test_array_requests",
        "files/test_compliance",
        "files/test_zarr_stores",
        "jobs/test_algorithm",
        "jobs/test_kill",
        "jobs/test_staging_kill",
        "operations/test_reduction_memory",
        "portal/test_deploy",
        "portal/test_formats",
        "portal/test_openapi",
        "portal/test_orders",
        "portal/test_output_datasets",
        "portal/test_pages",
        "portal/test_reduce",
        "portal/test_results",
        "portal/test_run_form",
        "portal/test_run_viewer",
        "portal/test_save_worker_replicas",
        "portal/test_serve",
        "portal/test_processes_clients",
        "portal/test_stac",
        "portal/test_subscribed_algorithm",
        "portal/test_trace_requests",
        "portal/test_vo_async",
        "portal/test_vo_cubes",
        "portal/test_vo_discovery",
        "portal/test_vo_fuzz",
        "runs/test_auto_placement",
        "runs/test_slurm_run",
        "runs/test_wrong_clocks",
        "sandbox/test_attacks",
        "sandbox/test_limits",
        "stores/test_cache_kills",
        "stores/test_block_server",
        "stores/test_block_server_copies",
        "stores/test_bucket_results",
        "stores/test_buckets",
        "stores/test_cache",
        "stores/test_frm",
        "stores/test_gfal2",
        "stores/test_listing",
        "stores/test_remote",
        "stores/test_s3_restore",
        "stores/test_stores",
        "stores/test_stripes_clocks",
        "stores/test_stripes_hanging",
        "stores/test_stripes_places",
        "stores/test_stripes_progress",
        "stores/test_xrootd_prepare",
        "subscriptions/test_mqtt",
        "support/test_servers",
        "test_extras",
        "test_wheel",
        "trace/test_collect",
        "trace/test_export",
        "trace/test_host_monitor",
        "trace/test_viewer",
        "workers/test_autoscale",
        "workers/test_batch_systems",
        "workers/test_dask",
        "workers/test_drain",
        "workers/test_kill",
        "workers/test_nodes",
        "workers/test_peers",
        "workers/test_simulator",
        "workers/test_slurm",
    }
)
"""Files of tests that need real servers, browsers, other hosts or kills, or take long."""


def name_of(path: Path) -> str:
    """Return the name of a test file below `tests/`, without its suffix."""
    return path.relative_to(Path(__file__).parent).with_suffix("").as_posix()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave those files out where only others run: each process would import them."""
    is_without_more = str(config.option.markexpr).startswith("not more")
    is_test = collection_path.suffix == ".py"
    return True if is_without_more and is_test and name_of(collection_path) in MORE else None


LONGEST = (
    "test_benches",
    "stores/test_stripes_hanging",
    "workers/test_dask",
    "workers/test_batch_systems",
    "portal/test_vo_fuzz",
    "portal/test_serve",
    "portal/test_pages",
    "workers/test_drain",
    "stores/test_striped_faults",
    "workers/test_kill",
    "portal/test_orders",
    "portal/test_subscribed_algorithm",
    "stores/test_writing",
    "stores/test_filesystem",
    "trace/test_bottlenecks",
    "workers/test_autoscale",
    "stores/test_block_server_faults",
    "attack/test_intake",
)
"""Files that take minutes, the longest first: each runs in one process, which others would wait for
at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-more` runs: those files, and all on PostgreSQL; longest files first."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(name_of(item.path), len(ranks)))
    for item in items:
        values = getattr(getattr(item, "callspec", None), "params", {}).values()
        on_postgres = any(isinstance(value, str) and value == "postgres" for value in values)
        if on_postgres or name_of(item.path) in MORE:
            item.add_marker("more")


REQUIRED = required_names(name_of(path) for path in Path(__file__).parent.rglob("test_*.py"))
"""Files whose tests may not be skipped on this machine."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let required tests fail where others are skipped."""
    report = yield
    return without_skip(report) if name_of(item.path) in REQUIRED else report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep what collection makes out of garbage collections: it stays, and it is much."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Browser) -> Iterator[OpenPage]:
    """Open pages by their addresses; see `visiting`."""
    with visiting(browser) as opening:
        yield opening


@pytest.fixture(scope="session", autouse=True)
def index_folder() -> Iterator[Path]:
    """The index of this run, away from the user's."""
    assert os.environ["SWATHE_INDEX_DIR"] == INDEX
    yield Path(INDEX)
    shutil.rmtree(INDEX, ignore_errors=True)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real files."""
    if not DATA.is_dir():
        pytest.skip(f"the real files are not there: {DATA} (SWATHE_TEST_DATA)")
    return DATA


@pytest.fixture(scope="session")
def new_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give a path with the suffix asked for that no test has used: files are known by path."""
    folder = tmp_path_factory.mktemp("new")
    numbers = itertools.count()
    return lambda suffix: folder / f"{next(numbers)}{suffix}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[sqlalchemy.URL]:
    """A PostgreSQL server."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    else:
        with new_database(request.getfixturevalue("postgres")) as made:
            yield made


@pytest.fixture
def catalog(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Catalog]:
    """The catalogue of the process, empty."""
    if url.startswith("sqlite:"):
        new_catalog(tmp_path / "catalog.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with Catalog.open(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample survey of one frame; its targets are in `targets.csv`."""
    return new_sample(tmp_path_factory.mktemp("survey"), 1, 100).parent


@pytest.fixture
def jobs(catalog: Catalog, tmp_path: Path) -> Iterator[Jobs]:
    """Jobs of that catalogue, which nobody works on."""
    with Jobs(catalog, tmp_path / "results", limits=Limits()) as made:
        yield made


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> fits_frames.Runner:
    """Runs commands with a catalogue of the test's own, and no credentials."""
    forget_credentials(monkeypatch)
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "c.sqlite"))
    monkeypatch.setenv("COLUMNS", "200")
    return fits_frames.Runner(monkeypatch, capsys)


@pytest.fixture
def runner(jobs: Jobs) -> Iterator[Runner]:
    """Who works on them."""
    with running(jobs) as made:
        yield made


def real_files(*folders: str) -> list[str]:
    """Names of the real files below some folders, for parametrization; none where absent.

    Files of other formats than FITS are left out.
    """
    paths = [path for folder in folders for path in sorted((DATA / folder).glob("*"))]
    return [str(path.relative_to(DATA)) for path in paths if not is_of_arrays(path)]


def is_of_arrays(path: Path) -> bool:
    """Check whether a file begins as one of a format of arrays does, or is one that is gzipped."""
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(b"\x1f\x8b"):
        with gzip.open(path) as file:
            try:
                start = file.read(16)
            except (OSError, EOFError):  # damaged
                return False
    starts = tuple(magic for name, each in MAGIC.items() if name != "fits" for magic in each)
    return start.startswith(starts)


def assert_same(found: Any, expected: Any) -> None:
    """Same type, byte order, shape and bits, NaN included."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.dtype.isnative == expected.dtype.isnative
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def fits_bytes(
    stored: NDArray[Any], cards: Iterable[fits.Card | tuple[Any, ...]] = (), name: str | None = None
) -> bytes:
    """One HDU of these stored pixels, cards as given; with a name, an extension."""
    bitpix = next(number for number, kind in BITPIX.items() if stored.dtype == np.dtype(kind))
    header = fits.Header()
    if name is None:
        header.append(("SIMPLE", True, "standard FITS"))
    else:
        header.append(("XTENSION", "IMAGE", "extension"))
    header.append(("BITPIX", bitpix, "stored type"))
    header.append(("NAXIS", stored.ndim, "axes"))
    for axis, length in enumerate(stored.shape[::-1]):
        header.append((f"NAXIS{axis + 1}", length, f"length of axis {axis + 1}"))
    if name is not None:
        header.extend([("PCOUNT", 0), ("GCOUNT", 1), ("EXTNAME", name)])
    for card in cards:
        header.append(card, end=True)
    text: str = header.tostring()
    return text.encode("ascii") + padded(stored.tobytes())


def padded(data: bytes) -> bytes:
    """Fill up to whole blocks with zeros."""
    return data + bytes(-len(data) % BLOCK)


def raw_cards(header: bytes) -> list[str]:
    """The cards of a header as they stand, up to END."""
    text = header.decode("latin-1")
    cards = [text[at : at + 80] for at in range(0, len(text), 80)]
    end = next(number for number, card in enumerate(cards) if card.rstrip() == "END")
    return cards[:end]


def random_box(rng: np.random.Generator, width: int, height: int) -> tuple[int, int, int, int]:
    """Some `(x0, y0, width, height)` within an image."""
    x = np.sort(rng.integers(0, width + 1, 2))
    y = np.sort(rng.integers(0, height + 1, 2))
    x0, y0 = min(int(x[0]), width - 1), min(int(y[0]), height - 1)
    return x0, y0, max(1, int(x[1] - x0)), max(1, int(y[1] - y0))
