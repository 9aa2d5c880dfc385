"""What each experiment can be told: in a TOML file, a section each, or by flags that mean the same.

A field is a key of the file and a flag of the command; its help and bounds are told here once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_type_hints

from swathe import _swathe
from swathe.core.errors import SettingsError
from swathe.core.toml_settings import read_toml, refuse_unknown, section, value, wrong

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Method: TypeAlias = Literal["GZ", "GUNZIP", "FIT", "bz2", "fz"]
Client: TypeAlias = Literal[
    "swathe", "swathe-indexed", "cfitsio", "fitsio", "astropy", "astropy-fsspec"
]
Way: TypeAlias = Literal["one", "many"]


def setting(default: Any, about: str, least: float | None = None, most: float | None = None) -> Any:
    """Give a field with what is told about it, and its bounds."""
    return field(default=default, metadata={"help": about, "least": least, "most": most})


@dataclass(frozen=True)
class Common:
    """What all experiments that cut can be told."""

    stores: tuple[str, ...] = setting(
        (), "Folder, URL or NAME: of a store with the frames; else a sample is made here."
    )
    frames: int = setting(60, "How many frames of each store are used.", 1, 100_000)
    name: str = setting(
        "frame-{:06d}", "Name of a frame without its ending, by its number from 1, as in Python."
    )
    suffix: str = setting(
        ".fit", "Ending of plain frames; .gz, .bz2 and .fz come after or instead."
    )
    seed: int = setting(1, "Of what is cut, and in which order.", 0)


@dataclass(frozen=True)
class Single(Common):
    """One client: what each stage of a crop takes."""

    methods: tuple[Method, ...] = setting(
        ("GZ", "GUNZIP", "FIT", "bz2", "fz"), "How the frames are kept and read."
    )
    crops: tuple[int, ...] = setting((1, 10), "Crops of each image.", 1, 10_000)
    clients: tuple[Client, ...] = setting(
        ("swathe", "swathe-indexed", "cfitsio", "fitsio", "astropy", "astropy-fsspec"), "Who cuts."
    )
    size: int = setting(100, "Side of a crop, pixels.", 1, 100_000)
    images: int = setting(20, "Images of each case and round.", 1, 100_000)
    repeats: int = setting(5, "Rounds, in each of which all cases take their turn.", 1, 1000)
    budget_s: float = setting(
        3.0, "After so long a case cuts from no other image in this round.", 0.01, 1e5
    )


@dataclass(frozen=True)
class Region(Common):
    """One client: regions of several sizes, and how many bytes they take."""

    sizes: tuple[int, ...] = setting((10, 100, 1000), "Sides of regions, pixels.", 1, 100_000)
    ways: tuple[Way, ...] = setting(
        ("one", "many"), "A region at a time, or all of a list together (cut_many)."
    )
    regions: int = setting(60, "Regions of each case and round.", 1, 1_000_000)
    repeats: int = setting(5, "Rounds, in each of which all cases take their turn.", 1, 1000)
    budget_s: float = setting(
        10.0, "After so long no region is begun in this round; lists are cut to fit it.", 0.01, 1e5
    )


@dataclass(frozen=True)
class Ramp(Common):
    """Clients that join over time."""

    portal: str = setting("", "URL of a portal to ask instead of stores ($SWATHE_TOKEN is sent).")
    dataset: str = setting("", "Of the portal: only images of this dataset are asked for.")
    model: Literal["closed", "open"] = setting(
        "closed", "closed: asks when answered; open: at its rate whatever becomes of it."
    )
    clients: int = setting(100, "How many there are in the end.", 1, 10_000)
    kind: Literal["process", "thread"] = setting("process", "What each client is.")
    join_s: float = setting(0.5, "Seconds until the next one joins.", 0, 3600)
    stay_s: float = setting(10.0, "Seconds all stay after the last joined.", 0.1, 1e5)
    rate: float = setting(1.0, "Requests a second of each client, with the open model.", 1e-3, 1e5)
    size: int = setting(100, "Side of a crop, pixels.", 1, 100_000)
    window_s: float = setting(1.0, "Seconds of one point of the figures.", 0.05, 3600)
    listen: str = setting("", "HOST:PORT at which `bench join` of other hosts is awaited.")
    hosts: int = setting(0, "How many join; the clients are on them, none here.", 0, 1000)
    offsets: str = setting(
        "", "TOML file with the clock of each host minus ours, seconds; else it is estimated."
    )


@dataclass(frozen=True)
class Load(Common):
    """Mixes of reductions, and what the host does meanwhile."""

    mixes: tuple[Literal["light", "heavy"], ...] = setting(
        ("light", "heavy"), "light: mostly small cuts; heavy: mostly stacks of large ones."
    )
    workers: tuple[int, ...] = setting(
        (1, 2, 4, 8), "Processes at work, one level after another.", 1
    )
    level_s: float = setting(5.0, "Seconds of each level.", 0.2, 1e5)
    interval_s: float = setting(0.5, "Between looks at the host.", 0.05, 3600)
    small: int = setting(100, "Side of a small cut, pixels.", 1, 100_000)
    large: int = setting(1000, "Side of a cut that is stacked, pixels.", 1, 100_000)
    depth: int = setting(20, "Images of a stack.", 1, 10_000)
    full_percent: float = setting(90.0, "From here on a resource has run out.", 1, 100)


@dataclass(frozen=True)
class Buffer:
    """The read-buffer study."""

    stores: tuple[str, ...] = setting((), "Name of a store, NAME:path, URL or path.")
    repeats: int = setting(7, "How often with each size.", 1, 1000)
    budget_s: float = setting(30.0, "Seconds each store may take.", 0.1, 1e5)
    budget_mb: float = setting(1000.0, "MB each store may move.", 0.1, 1e7)
    seed: int = setting(1, "Of the order of reads.", 0)


KINDS: dict[str, type[Any]] = {
    "single": Single,
    "region": Region,
    "ramp": Ramp,
    "load": Load,
    "buffer": Buffer,
}
T = TypeVar("T")


def settings_of(kind: type[T], path: Path | None, flags: Mapping[str, Any]) -> T:
    """Give the settings of an experiment: of its section of a file, where flags are not given.

    Args:
        kind: class of the settings.
        path: of a TOML file; other experiments may have sections in it, too.
        flags: by key; `None` or nothing where not given.

    Raises:
        SettingsError: where something is unknown or makes no sense; names the key.
    """
    name = next(each for each, of in KINDS.items() if of is kind)
    given = {} if path is None else read_toml(path)
    types = get_type_hints(kind)
    chosen: dict[str, Any] = {}
    try:
        refuse_unknown("section", given, KINDS)
        made = section(name, kind, given.get(name, {}))
        for key, one in flags.items():
            if one is not None and one not in ([], ()):
                plain_one = list(one) if isinstance(one, tuple) else one
                chosen[key] = value(f"{name}.{key}", types[key], plain_one)
        made = replace(made, **chosen)  # type: ignore[type-var]
        check(name, made)
    except SettingsError as error:
        key = str(error).partition(":")[0].rpartition(".")[2]
        if path is None or flags.get(key):
            raise
        raise SettingsError(f"{path}: {error}") from None
    return made


def check(name: str, made: Any) -> None:
    """Refuse what is out of bounds, or makes no sense together.

    Raises:
        SettingsError: that names the key.
    """
    for each in fields(made):
        least, most = each.metadata.get("least"), each.metadata.get("most")
        given = getattr(made, each.name)
        for one in given if isinstance(given, tuple) else (given,):
            if least is not None and not one >= least:
                raise wrong(f"{name}.{each.name}", f"at least {least:g}", one)
            if most is not None and not one <= most:
                raise wrong(f"{name}.{each.name}", f"at most {most:g}", one)
        if isinstance(given, tuple) and each.name != "stores":
            if not given:
                raise wrong(f"{name}.{each.name}", "one at least", list(given))
            if len(set(given)) < len(given):
                raise wrong(f"{name}.{each.name}", "each once", list(given))
    if isinstance(made, Common):
        _check_name(name, made)
    if isinstance(made, Ramp):
        _check_ramp(made)


def _check_name(name: str, made: Common) -> None:
    try:
        named = {made.name.format(number) for number in (1, 2)}
    except (ValueError, IndexError, KeyError, AttributeError):
        named = set()
    if len(named) != 2:
        raise wrong(f"{name}.name", "a name with a number, as frame-{:06d}", made.name)


def _check_ramp(made: Ramp) -> None:
    if made.portal and made.stores:
        raise wrong("ramp.portal", "it or ramp.stores, not both", _swathe.shown(made.portal))
    if made.dataset and not made.portal:
        raise wrong("ramp.dataset", "to come with ramp.portal", made.dataset)
    if bool(made.listen) != bool(made.hosts):
        raise wrong("ramp.listen", "to come with ramp.hosts", made.listen)
    if made.hosts > made.clients:
        raise wrong("ramp.hosts", f"at most ramp.clients, {made.clients}", made.hosts)
    if made.offsets and not made.listen:
        raise wrong("ramp.offsets", "to come with ramp.listen", made.offsets)
    # 0.6 s are three windows of 0.2 s, though not as binary fractions.
    if made.stay_s * (1 + 1e-9) < 3 * made.window_s:
        raise wrong("ramp.stay_s", f"at least 3 windows of {made.window_s:g} s", made.stay_s)


def plain(made: Any) -> dict[str, Any]:
    """Give settings as they are kept in tables: lists for tuples, URLs without secrets."""
    found = {key: list(one) if isinstance(one, tuple) else one for key, one in asdict(made).items()}
    if "portal" in found:
        found["portal"] = _swathe.shown(made.portal)
    return found | {"stores": [_swathe.shown(store) for store in made.stores]}
