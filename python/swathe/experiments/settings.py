"""Settings of each experiment: from a TOML file with a section each, or from flags.

A field is a key of the file and a flag of the command; its help and bounds are defined here once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from swathe import _swathe
from swathe.core.errors import SettingsError
from swathe.core.toml_settings import read_toml, refuse_unknown, section, value, value_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Method: TypeAlias = Literal["GZ", "GUNZIP", "FIT", "bz2", "fz"]
Client: TypeAlias = Literal[
    "swathe", "swathe-indexed", "cfitsio", "fitsio", "astropy", "astropy-fsspec"
]
Way: TypeAlias = Literal["one", "many"]


def setting(default: Any, about: str, least: float | None = None, most: float | None = None) -> Any:
    """Return a field with its help text and bounds."""
    return field(default=default, metadata={"help": about, "least": least, "most": most})


@dataclass(frozen=True)
class CommonSettings:
    """Settings of all experiments that cut."""

    stores: tuple[str, ...] = setting(
        (), "Folder, URL or NAME: of a store with the frames (default: a sample made here)."
    )
    frames: int = setting(60, "Number of frames used per store.", 1, 100_000)
    name: str = setting(
        "frame-{:06d}", "Frame name without ending, as a Python format of its number from 1."
    )
    suffix: str = setting(
        ".fit", "Ending of plain frames; .gz, .bz2 and .fz are added or replace it."
    )
    seed: int = setting(1, "Seed of the random regions and their order.", 0)


@dataclass(frozen=True)
class SingleSettings(CommonSettings):
    """One client: seconds of each stage of a crop."""

    methods: tuple[Method, ...] = setting(
        get_args(Method), "Storage and read methods of the frames."
    )
    crops: tuple[int, ...] = setting((1, 10), "Numbers of crops per image.", 1, 10_000)
    clients: tuple[Client, ...] = setting(
        get_args(Client),
        "Clients to compare.",
    )
    size: int = setting(100, "Side of a crop in pixels.", 1, 100_000)
    images: int = setting(20, "Images per case and round.", 1, 100_000)
    repeats: int = setting(5, "Number of rounds; each round runs all cases.", 1, 1000)
    budget_s: float = setting(
        3.0, "Seconds per case and round; after that no further image is begun.", 0.01, 1e5
    )


@dataclass(frozen=True)
class RegionSettings(CommonSettings):
    """One client: regions of several sizes, and the bytes they need."""

    sizes: tuple[int, ...] = setting((10, 100, 1000), "Sides of the regions in pixels.", 1, 100_000)
    ways: tuple[Way, ...] = setting(
        ("one", "many"), "One region at a time, or a whole list together (cut_many)."
    )
    regions: int = setting(60, "Regions per case and round.", 1, 1_000_000)
    repeats: int = setting(5, "Number of rounds; each round runs all cases.", 1, 1000)
    budget_s: float = setting(
        10.0,
        "Seconds per case and round; then no region is begun; lists are shortened to fit.",
        0.01,
        1e5,
    )


@dataclass(frozen=True)
class RampSettings(CommonSettings):
    """Clients that join over time."""

    portal: str = setting("", "URL of a portal to use instead of stores ($SWATHE_TOKEN is sent).")
    dataset: str = setting("", "Dataset of the portal whose images are requested (default: all).")
    model: Literal["closed", "open"] = setting(
        "closed", "Load; closed: next request after the answer, open: requests at a fixed rate."
    )
    clients: int = setting(100, "Number of clients at the end.", 1, 10_000)
    kind: Literal["process", "thread"] = setting("process", "Kind of a client: process or thread.")
    join_s: float = setting(0.5, "Seconds between joining clients.", 0, 3600)
    stay_s: float = setting(
        10.0, "Seconds that all clients stay after the last has joined.", 0.1, 1e5
    )
    rate: float = setting(1.0, "Requests per second and client, in the open model.", 1e-3, 1e5)
    size: int = setting(100, "Side of a crop in pixels.", 1, 100_000)
    window_s: float = setting(1.0, "Seconds per point of the figures.", 0.05, 3600)
    listen: str = setting("", "HOST:PORT to listen on for `bench join` of other hosts.")
    hosts: int = setting(0, "Number of hosts that join; they run all clients.", 0, 1000)
    offsets: str = setting(
        "", "TOML file with each host's clock minus ours in seconds (default: estimated)."
    )


@dataclass(frozen=True)
class LoadSettings(CommonSettings):
    """Mixes of reductions, and the host's load."""

    mixes: tuple[Literal["light", "heavy"], ...] = setting(
        ("light", "heavy"),
        "Mix of work; light: mostly small cuts, heavy: mostly large stacks.",
    )
    workers: tuple[int, ...] = setting(
        (1, 2, 4, 8), "Numbers of worker processes, one level after another.", 1
    )
    level_s: float = setting(5.0, "Seconds per level.", 0.2, 1e5)
    interval_s: float = setting(0.5, "Seconds between samples of the host.", 0.05, 3600)
    small: int = setting(100, "Side of a small cut in pixels.", 1, 100_000)
    large: int = setting(1000, "Side of a stacked cut in pixels.", 1, 100_000)
    depth: int = setting(20, "Images per stack.", 1, 10_000)
    full_percent: float = setting(
        90.0, "Percentage at which a resource counts as exhausted.", 1, 100
    )


@dataclass(frozen=True)
class BufferSettings:
    """The read-buffer study."""

    stores: tuple[str, ...] = setting((), "Name of a store, NAME:path, URL or path.")
    repeats: int = setting(7, "Repetitions of each size.", 1, 1000)
    budget_s: float = setting(30.0, "Time limit per store in seconds.", 0.1, 1e5)
    budget_mb: float = setting(1000.0, "Data limit per store in MB.", 0.1, 1e7)
    seed: int = setting(1, "Seed of the order of reads.", 0)


KINDS: dict[str, type[Any]] = {
    "single": SingleSettings,
    "region": RegionSettings,
    "ramp": RampSettings,
    "load": LoadSettings,
    "buffer": BufferSettings,
}
T = TypeVar("T")


def settings_of(kind: type[T], path: Path | None, flags: Mapping[str, Any]) -> T:
    """Return the settings of an experiment: flags override its section of a file.

    Args:
        kind: class of the settings.
        path: path of a TOML file; it may have sections of other experiments.
        flags: values by key; `None` or missing if not given.

    Raises:
        SettingsError: If a key is unknown or a value is invalid; the text names the key.
    """
    name = next(each for each, of in KINDS.items() if of is kind)
    sections = {} if path is None else read_toml(path)
    types = get_type_hints(kind)
    choices: dict[str, Any] = {}
    try:
        refuse_unknown("section", sections, KINDS)
        result = section(name, kind, sections.get(name, {}))
        for key, one in flags.items():
            if one is not None and one not in ([], ()):
                plain_one = list(one) if isinstance(one, tuple) else one
                choices[key] = value(f"{name}.{key}", types[key], plain_one)
        result = replace(result, **choices)  # type: ignore[type-var]
        check(name, result)
    except SettingsError as error:
        key = str(error).partition(":")[0].rpartition(".")[2]
        if path is None or flags.get(key):
            raise
        raise SettingsError(f"{path}: {error}") from None
    return result


def check(name: str, settings: Any) -> None:
    """Check that values are within bounds, and fit together.

    Raises:
        SettingsError: If they do not; the text names the key.
    """
    for each in fields(settings):
        least, most = each.metadata.get("least"), each.metadata.get("most")
        value = getattr(settings, each.name)
        for one in value if isinstance(value, tuple) else (value,):
            if least is not None and not one >= least:
                raise value_error(f"{name}.{each.name}", f"at least {least:g}", one)
            if most is not None and not one <= most:
                raise value_error(f"{name}.{each.name}", f"at most {most:g}", one)
        if isinstance(value, tuple) and each.name != "stores":
            if not value:
                raise value_error(f"{name}.{each.name}", "one at least", list(value))
            if len(set(value)) < len(value):
                raise value_error(f"{name}.{each.name}", "each once", list(value))
    if isinstance(settings, CommonSettings):
        _check_name(name, settings)
    if isinstance(settings, RampSettings):
        _check_ramp(settings)


def _check_name(name: str, settings: CommonSettings) -> None:
    try:
        names = {settings.name.format(number) for number in (1, 2)}
    except (ValueError, LookupError, AttributeError, TypeError, OverflowError, MemoryError):
        names = set()
    if len(names) != 2:
        raise value_error(f"{name}.name", "a name with a number, as frame-{:06d}", settings.name)


def _check_ramp(ramp: RampSettings) -> None:
    if ramp.portal and ramp.stores:
        raise value_error(
            "ramp.portal", "it or ramp.stores, not both", _swathe.redact_url(ramp.portal)
        )
    if ramp.dataset and not ramp.portal:
        raise value_error("ramp.dataset", "to come with ramp.portal", ramp.dataset)
    if bool(ramp.listen) != bool(ramp.hosts):
        raise value_error("ramp.listen", "to come with ramp.hosts", ramp.listen)
    if ramp.hosts > ramp.clients:
        raise value_error("ramp.hosts", f"at most ramp.clients, {ramp.clients}", ramp.hosts)
    if ramp.offsets and not ramp.listen:
        raise value_error("ramp.offsets", "to come with ramp.listen", ramp.offsets)
    # 0.6 s are three windows of 0.2 s, but not as binary fractions.
    if ramp.stay_s * (1 + 1e-9) < 3 * ramp.window_s:
        raise value_error("ramp.stay_s", f"at least 3 windows of {ramp.window_s:g} s", ramp.stay_s)


def plain(settings: Any) -> dict[str, Any]:
    """Return settings as stored in tables: lists for tuples, URLs without secrets."""
    values = {
        key: list(one) if isinstance(one, tuple) else one for key, one in asdict(settings).items()
    }
    if "portal" in values:
        values["portal"] = _swathe.redact_url(settings.portal)
    return values | {"stores": [_swathe.redact_url(store) for store in settings.stores]}
