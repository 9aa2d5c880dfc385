"""The settings of a portal: `swathe.toml`, checked as a whole before anything starts.

Every section is a class here, every key a field of it, with its default. What is unknown, of the
wrong type or out of bounds is a `SettingsError` that names `section.key`.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints
from urllib.parse import urlsplit

from swathe.core.errors import SettingsError
from swathe.core.host import is_loopback
from swathe.core.paths import default_url
from swathe.core.toml_settings import read_toml, refuse_unknown, section, wrong

if TYPE_CHECKING:
    from swathe.workers.autoscale.policy import Limits

HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
NO_AUTHORITY = "swathe.invalid"
"""Of identifiers that nobody beyond this machine sees."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def default_results() -> Path:
    """Give the folder for results if none is set: `$XDG_DATA_HOME/swathe/results`."""
    data = os.environ.get("XDG_DATA_HOME", "")
    root = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return root / "swathe" / "results"


@dataclass(frozen=True)
class Server:
    """Where it listens, and what stands before it.

    Attributes:
        host: address or name to listen at.
        port: 0: any free one.
        url: what it is called from outside, as behind a proxy.
        proxies: addresses or networks of proxies that are believed whom a request is from.
        access_log: whether each answer is a line on standard error.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    url: str = ""
    proxies: tuple[str, ...] = ()
    access_log: bool = False


@dataclass(frozen=True)
class Database:
    """The catalogue's database, which also keeps the jobs. Its URL may hold a password."""

    database: str = field(default_factory=default_url, repr=False)


@dataclass(frozen=True)
class Results:
    """Where the results of jobs lie, and for how many days if nobody says otherwise.

    Attributes:
        folder: a local one, unless there is a store.
        store: `NAME:prefix` of one that is declared, which may be a bucket.
        scratch: the local folder where results for a bucket are made; else one for temporary files.
    """

    folder: Path = field(default_factory=default_results)
    store: str | None = None
    scratch: Path | None = None
    keep_days: float = 7.0


@dataclass(frozen=True)
class AccessSettings:
    """Who may come in, and where URLs in targets may lead.

    Attributes:
        tokens: whether each request needs one.
        open: listen beyond loopback although none are needed.
        origins: of web pages elsewhere that may use this portal from a browser; `*`: any may read.
        hosts: `host` or `host:port` of servers that files may be read from by URL.
        metrics: who may read /metrics: admins, or anybody.
    """

    tokens: Literal["none", "required"] = "none"
    open: bool = False
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    metrics: Literal["admin", "open"] = "admin"


@dataclass(frozen=True)
class LimitSettings:
    """What one user, one job, one request may take.

    Attributes:
        rows_per_job: results of one job.
        rows_waiting: results of all jobs of a user that are not done.
        jobs: of a user that are not done.
        result_gb: results of a user that are kept, 10**9 bytes.
        longest_days: that results may be kept.
        body_mb: largest body of a request, 10**6 bytes.
        cutout_mb: pixels of one cutout, MiB.
        upload_mb: memory that the process may take that reads a table, MiB.
        threads: that cut; 0: as many as there are cores.
        streams: answers that wait (events, manifests, `wait`) at the same time.
        downloads: files and archives that are sent at the same time.
        uploads: bodies above 64 kB that are received and read at the same time.
        connections: that are open at the same time.
        share: part of each of these, and of the threads, that one user or address may have.
        header_s: time for the header of a request, seconds.
        stream_s: longest life of an event stream, seconds; browsers connect again.
    """

    rows_per_job: int = 100_000
    rows_waiting: int = 1_000_000
    jobs: int = 20
    result_gb: float = 20.0
    longest_days: float = 30.0
    body_mb: float = 32.0
    cutout_mb: int = 512
    upload_mb: int = 512
    threads: int = 0
    streams: int = 200
    downloads: int = 200
    uploads: int = 32
    connections: int = 1000
    share: float = 0.25
    header_s: float = 10.0
    stream_s: float = 3600.0


@dataclass(frozen=True)
class Workers:
    """Who does the work of jobs.

    Attributes:
        url: of a scheduler, `dask://HOST:PORT`; empty: threads of this process.
        certificates: the folder that `swathe pool init` made; needed beyond loopback.
        insecure: no certificates are wanted: whoever reaches the scheduler can run code.
        batch_s: how long a batch is to take.
        hand_over_s: how long a worker that leaves may hand over what it holds; 0: nothing.
        grow: what starts workers when more are wanted: nothing, this machine, or a batch system.
        minimum: workers there are always.
        maximum: never more, whatever waits or is reserved.
        spare: idle ones to be ready.
        cores: of each: batches that it does at a time.
        soon_s: what waits is to be done in so long.
        idle_s: one that had no work for so long may go.
        start_s: how long one takes from being asked for until it is there.
        walltime_s: each ends after so long; 0, where no batch system is asked: never.
        cache: folder for the block caches of those that are started, each in one of its own.
        memory_gb: of each, that a batch system is asked for, 10**9 bytes; 0: what it gives.
        partition: of Slurm, or queue of PBS; else its default.
        options: further ones of `sbatch` or `qsub`, or lines for `condor_submit`.
    """

    url: str = ""
    certificates: Path | None = None
    insecure: bool = False
    batch_s: float = 1.0
    hand_over_s: float = 60.0
    grow: Literal["", "processes", "slurm", "pbs", "htcondor"] = ""
    minimum: int = 0
    maximum: int = 4
    spare: int = 1
    cores: int = 1
    soon_s: float = 60.0
    idle_s: float = 300.0
    start_s: float = 30.0
    walltime_s: float = 0.0
    cache: Path | None = None
    memory_gb: float = 0.0
    partition: str = ""
    options: tuple[str, ...] = ()


SUBMITS = {"slurm": "sbatch", "pbs": "qsub", "htcondor": "condor_submit"}
"""What submits the jobs of batch systems."""
ASKED = {
    "memory_gb": tuple(SUBMITS),
    "partition": ("slurm", "pbs"),
    "options": tuple(SUBMITS),
}
"""What some of them can be asked for."""
GROWS_FROM = [each.name for each in fields(Workers)].index("minimum")
"""From this field on they are of growth."""


@dataclass(frozen=True)
class Observatory:
    """What the interfaces of the Virtual Observatory call this archive."""

    authority: str = NO_AUTHORITY
    title: str = "Swathe"


@dataclass(frozen=True)
class Config:
    """All settings. The fields are the sections of the file."""

    server: Server = field(default_factory=Server)
    catalog: Database = field(default_factory=Database)
    results: Results = field(default_factory=Results)
    access: AccessSettings = field(default_factory=AccessSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    workers: Workers = field(default_factory=Workers)
    vo: Observatory = field(default_factory=Observatory)

    def at(
        self,
        host: str | None = None,
        port: int | None = None,
        *,
        workers: str | None = None,
        certificates: Path | None = None,
        insecure: bool = False,
    ) -> Config:
        """Give the same with another address to listen at, or other workers, checked again."""
        server, pool = self.server, self.workers
        if host is not None:
            server = replace(server, host=host)
        if port is not None:
            server = replace(server, port=port)
        if workers is not None:
            pool = replace(pool, url=workers)
        if certificates is not None:
            pool = replace(pool, certificates=certificates)
        if insecure:
            pool = replace(pool, insecure=True)
        return _checked(replace(self, server=server, workers=pool))


def read_config(path: Path | None) -> Config:
    """Read a file of settings; without one, all are as on a laptop.

    Raises:
        SettingsError: where it cannot be read or a setting makes no sense.
    """
    if path is None:
        return Config()
    given = read_toml(path)
    try:
        return config_of(given)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def config_of(given: Mapping[str, Any]) -> Config:
    """Give settings as a file has them.

    Raises:
        SettingsError: where a section or key is unknown, or a value makes no sense.
    """
    kinds = get_type_hints(Config)
    refuse_unknown("section", given, kinds)
    sections = {name: section(name, kinds[name], values) for name, values in given.items()}
    results = sections.get("results", Results())
    if results.store is not None and "folder" in given["results"]:
        raise wrong("results.store", "it or results.folder, not both", results.store)
    return _checked(Config(**sections))


def _checked(config: Config) -> Config:
    """Give settings that make sense, also together."""
    server, access = config.server, config.access
    if not is_address(server.host):
        raise wrong("server.host", "a host name or IP address", server.host)
    if not 0 <= server.port < 65536:
        raise wrong("server.port", "0 (any free one) to 65535", server.port)
    if server.url and not _is_origin(server.url.rstrip("/")):
        raise wrong("server.url", "http(s)://host[:port], with no path", server.url)
    for name, part in (("results", config.results), ("limits", config.limits)):
        for key in fields(part):
            value = getattr(part, key.name)
            least = 0 if key.name == "threads" else 1e-9 if isinstance(value, float) else 1
            if isinstance(value, int | float) and not least <= value <= 1e12:
                raise wrong(f"{name}.{key.name}", "a positive number", value)
    if config.limits.share > 1:
        raise wrong("limits.share", "a part, at most 1", config.limits.share)
    for proxy in server.proxies:
        if not _is_network(proxy):
            raise wrong("server.proxies", "IP addresses or networks, as 10.0.0.0/8", proxy)
    store, scratch = config.results.store, config.results.scratch
    if store == "":
        raise wrong("results.store", "NAME:prefix", store)
    if scratch is not None and store is None:
        raise wrong("results.scratch", "to come with results.store", str(scratch))
    if config.results.keep_days > config.limits.longest_days:
        longest = f"at most limits.longest_days, {config.limits.longest_days:g}"
        raise wrong("results.keep_days", longest, config.results.keep_days)
    _check_workers(config.workers)
    for origin in access.origins:
        if origin != "*" and not _is_origin(origin):
            raise wrong("access.origins", "'*' or http(s)://host[:port], with no path", origin)
    for host in access.hosts:
        name, _, port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "1")
        if not HOST.fullmatch(name) or not 0 < int(port) < 65536:
            raise wrong("access.hosts", "host or host:port, in small letters", host)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._~-]{2,}", config.vo.authority):
        raise wrong("vo.authority", "three or more letters, digits, '.', '-'", config.vo.authority)
    if not is_loopback(server.host) and access.tokens == "none" and not access.open:
        raise SettingsError(
            f"server.host: {server.host} can be reached from other machines, and no token is "
            "needed: set access.tokens = 'required', or access.open = true if anybody may come in"
        )
    if not is_loopback(server.host) and config.vo.authority == NO_AUTHORITY:
        raise SettingsError(
            f"vo.authority: expected a name of yours, found {NO_AUTHORITY!r}: identifiers of "
            f"images would be seen beyond this machine, as it listens at {server.host}; set "
            "it to the authority that you registered, or to a domain of yours, as 'archive.example'"
        )
    return config


def _check_workers(workers: Workers) -> None:
    if not 0.5 <= workers.batch_s <= 5:
        raise wrong("workers.batch_s", "0.5 to 5", workers.batch_s)
    if not 0 <= workers.hand_over_s <= 3600:
        raise wrong("workers.hand_over_s", "0 to 3600", workers.hand_over_s)
    _check_growth(workers)
    if not workers.url:
        for name in ("certificates", "insecure", "grow"):
            if given := getattr(workers, name):
                raise wrong(f"workers.{name}", "to come with workers.url", str(given))
        return
    from swathe.workers.dask.tls import certificate_folder, read_address, security_for

    try:
        address, certificates = read_address(workers.url), workers.certificates
        certificate_folder(address, certificates, insecure=workers.insecure)
        if certificates is not None:  # others are made by whoever needs them first
            security_for(address, certificates, "portal")
            if workers.grow:  # those that are started use the same folder
                security_for(address, certificates, "worker")
    except ImportError as error:
        raise SettingsError(f"workers.url: {error}; try: pip install 'swathe[cluster]'") from error
    except SettingsError as error:
        raise SettingsError(f"workers: {error}") from None


def growth_of(workers: Workers) -> Limits:
    """Give how many workers there may be, and when.

    Raises:
        SettingsError: where that makes no sense.
    """
    from swathe.workers.autoscale.policy import Limits

    names = ("minimum", "maximum", "spare", "soon_s", "idle_s", "start_s")
    try:
        # Times end when a worker takes nothing more: what it hands over, it does afterwards.
        return Limits(**{name: getattr(workers, name) for name in names}, hand_over_s=0.0)
    except ValueError as error:
        raise SettingsError(f"workers.{error}") from None


def _check_growth(workers: Workers) -> None:
    if not workers.grow:
        for each in fields(workers)[GROWS_FROM:]:
            if (value := getattr(workers, each.name)) != each.default:
                found = str(value) if isinstance(value, Path) else value
                raise wrong(f"workers.{each.name}", "to come with workers.grow", found)
        return
    growth_of(workers)
    if workers.maximum < 1:
        raise wrong("workers.maximum", "1 or more", workers.maximum)
    if not 1 <= workers.cores <= 1024:
        raise wrong("workers.cores", "1 to 1024", workers.cores)
    submits = SUBMITS.get(workers.grow, "")
    if submits or workers.walltime_s:
        least = 2 * workers.start_s
        if not max(least, 60.0) <= workers.walltime_s < math.inf:
            expected = f"at least 60 and twice workers.start_s, {least:g}"
            raise wrong("workers.walltime_s", expected, workers.walltime_s)
    if not 0.0 <= workers.memory_gb < math.inf:
        raise wrong("workers.memory_gb", "10**9 bytes, or 0", workers.memory_gb)
    for name, systems in ASKED.items():
        if workers.grow not in systems and (given := getattr(workers, name)):
            expected = f"to come with workers.grow = {' or '.join(map(repr, systems))}"
            raise wrong(f"workers.{name}", expected, given)
    if submits and shutil.which(submits) is None:
        raise wrong("workers.grow", f"{submits} to be found in $PATH", workers.grow)


def is_address(host: str) -> bool:
    """Tell whether this is a host name or an IP address, of version 6 without brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(HOST.fullmatch(host.lower())) and not host.startswith("[")
    return True


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    host = parts.netloc if port is None else parts.netloc.rpartition(":")[0]
    whole = f"{parts.scheme}://{parts.netloc}" == text
    return whole and parts.scheme in ("http", "https") and bool(HOST.fullmatch(host))
