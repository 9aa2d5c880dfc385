"""The settings of a portal: `swathe.toml`, checked as a whole before anything starts.

Every section is a class here, and every key a field with its default. An unknown key, a wrong
type or a value out of bounds is a `SettingsError` that names `section.key`.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import Field

from swathe.algorithms.box_python import BoxPython
from swathe.algorithms.group_run import SPARE_USERS, BoxSettings
from swathe.catalog.tokens import USER
from swathe.core.errors import SettingsError
from swathe.core.host import is_loopback
from swathe.core.paths import default_url
from swathe.core.toml_settings import (
    SettingsErrors,
    read_toml,
    refuse_unknown,
    section,
    value_error,
)
from swathe.portal.hint_settings import MailSettings, MqttSettings
from swathe.portal.observatory_settings import NO_AUTHORITY, ObservatorySettings
from swathe.portal.setting_types import (
    AccessLog,
    Address,
    Command,
    Count,
    FullPath,
    HostPort,
    Network,
    Origin,
    Positive,
    Priority,
    PublicUrl,
    Slots,
    StorePrefix,
    UserRange,
)
from swathe.sandbox import UserIds
from swathe.sandbox.request import Mode

if TYPE_CHECKING:
    from swathe.workers.autoscale.policy import GrowthLimits

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def default_results() -> Path:
    """Return the default folder of results: `$XDG_DATA_HOME/swathe/results`."""
    data = os.environ.get("XDG_DATA_HOME", "")
    root = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return root / "swathe" / "results"


TokenPolicy: TypeAlias = Literal["none", "required"]
"""Whether each request needs a token."""


@dataclass(frozen=True)
class ServerSettings:
    """Address of the portal, and the proxies in front of it.

    Attributes:
        host: Address or name to listen on.
        port: Port to listen on; 0 = any free port.
        url: Public URL of the portal, as behind a proxy.
        proxies: Addresses or networks of proxies that are trusted to name the client.
        access_log: Whether to log each response as a line on standard error; `json`: as JSON.
    """

    host: Address = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8420
    url: PublicUrl = ""
    proxies: tuple[Network, ...] = ()
    access_log: AccessLog = False

    @property
    def log_form(self) -> Literal["text", "json"] | None:
        """Return the form of the access log; `None` if there is none."""
        if self.access_log == "json":
            return "json"
        return "text" if self.access_log else None


@dataclass(frozen=True)
class DatabaseSettings:
    """The database of the catalogue and the jobs. Its URL may contain a password."""

    database: str = field(default_factory=default_url, repr=False)


@dataclass(frozen=True)
class ResultsSettings:
    """Storage of job results.

    Attributes:
        folder: Local folder of results, if there is no store.
        store: `NAME:prefix` of a registered store, which may be a bucket.
        scratch: Local folder in which results for a bucket are made; else a temporary one.
        keep_days: Days for which results are kept by default.
        datasets: `NAME:prefix` of a registered store, for the datasets that orders fill with their
            outputs.
    """

    folder: FullPath = field(default_factory=default_results)
    store: StorePrefix | None = None
    scratch: FullPath | None = None
    keep_days: Positive = 7.0
    datasets: StorePrefix | None = None


@dataclass(frozen=True)
class AccessSettings:
    """Access to the portal, and the servers that URLs in targets may name.

    Attributes:
        tokens: Whether each request needs a token.
        open: Whether to listen beyond loopback although no token is required.
        origins: Origins of other web pages that may use this portal from a browser; `*`: any may
            read.
        hosts: `host` or `host:port` of servers from which files may be read by URL.
        webhooks: `host` or `host:port` of servers that webhooks and callbacks may go to although
            their addresses are not public.
        metrics: Users who may read /metrics: admins, or everyone.
    """

    tokens: TokenPolicy = "none"
    open: bool = False
    origins: tuple[Origin, ...] = ()
    hosts: tuple[HostPort, ...] = ()
    webhooks: tuple[HostPort, ...] = ()
    metrics: Literal["admin", "open"] = "admin"


@dataclass(frozen=True)
class LimitSettings:
    """Limits of one user, one job and one request.

    Attributes:
        rows_per_job: Maximum number of rows of a job.
        rows_waiting: Maximum number of unfinished rows of all jobs of a user.
        jobs: Maximum number of unfinished jobs of a user.
        subscriptions: Maximum number of subscriptions of a user.
        result_gb: Maximum size of the stored results of a user, 10**9 bytes.
        slots: Maximum number of groups of a user's orders at work at the same time; 0 = as many as
            the portal runs at all.
        priority: Priority of a user's jobs, relative to those of others.
        removal_gb: Maximum size of deleted results that are not removed yet, of all users,
            10**9 bytes; jobs wait beyond it.
        longest_days: Maximum number of days for which results may be kept.
        body_mb: Maximum size of a request body, 10**6 bytes.
        cutout_mb: Maximum size of the pixels of one cutout, MiB.
        upload_mb: Maximum memory of the process that reads an uploaded table, MiB.
        threads: Number of threads that cut; 0 = the number of cores.
        streams: Maximum number of parallel responses that wait (events, manifests, `wait`).
        downloads: Maximum number of parallel downloads of files and archives.
        uploads: Maximum number of parallel uploads (request bodies above 64 kB).
        connections: Maximum number of open connections.
        share: Part of the four numbers above, and of the threads, that one user or address may use.
        header_s: Timeout for the header of a request, seconds.
        stream_s: Maximum lifetime of an event stream, seconds; browsers reconnect.
    """

    rows_per_job: Count = 100_000
    rows_waiting: Count = 1_000_000
    jobs: Count = 20
    subscriptions: Count = 100
    result_gb: Positive = 20.0
    slots: Slots = 0
    priority: Priority = 5
    removal_gb: Positive = 40.0
    longest_days: Positive = 30.0
    body_mb: Positive = 32.0
    cutout_mb: Count = 512
    upload_mb: Count = 512
    threads: Annotated[int, Field(ge=0, le=10**12)] = 0
    streams: Count = 200
    downloads: Count = 200
    uploads: Count = 32
    connections: Count = 1000
    share: Annotated[float, Field(gt=0, le=1)] = 0.25
    header_s: Positive = 10.0
    stream_s: Positive = 3600.0


@dataclass(frozen=True)
class ShareSettings:
    """Share of one user, `[shares.NAME]`. What is left out is that of `[limits]`.

    Attributes:
        slots: Maximum number of groups at work at the same time; 0 = as many as the portal runs.
        result_gb: Maximum size of the stored results, 10**9 bytes.
        priority: Priority of the jobs, relative to those of others.
    """

    slots: Slots | None = None
    result_gb: Positive | None = None
    priority: Priority | None = None


@dataclass(frozen=True)
class WorkersSettings:
    """Workers that run the jobs.

    Attributes:
        url: Address of the scheduler, `dask://HOST:PORT`; empty = threads of this process.
        certificates: Folder made by `swathe pool init`; needed beyond loopback.
        insecure: Whether to use no certificates; then anyone who can reach the scheduler can run
            code.
        batch_s: Intended duration of a batch, seconds.
        hand_over_s: Time limit for a leaving worker to copy its cache to others, seconds; 0 = no
            copy.
        grow: Starter of further workers: none, this machine, or a batch system.
        minimum: Minimum number of workers.
        maximum: Maximum number of workers, whatever waits or is reserved.
        spare: Number of idle workers to keep ready.
        cores: Number of parallel batches per worker.
        soon_s: Intended time in which waiting work is finished, seconds.
        idle_s: Idle time after which a worker may be stopped, seconds.
        start_s: Time that a worker takes to start, seconds.
        walltime_s: Maximum lifetime of a worker, seconds; 0 = unlimited (without a batch system).
        cache: Parent folder for the block caches of started workers, one folder each.
        memory_gb: Memory to request per worker from a batch system, 10**9 bytes; 0 = its default.
        partition: Partition of Slurm, or queue of PBS; else its default.
        options: Further options of `sbatch` or `qsub`, or lines for `condor_submit`.
    """

    url: str = ""
    certificates: FullPath | None = None
    insecure: bool = False
    batch_s: Annotated[float, Field(ge=0.5, le=5)] = 1.0
    hand_over_s: Annotated[float, Field(ge=0, le=3600)] = 60.0
    grow: Literal["", "processes", "slurm", "pbs", "htcondor"] = ""
    minimum: int = 0
    maximum: Count = 4
    spare: int = 1
    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    soon_s: float = 60.0
    idle_s: float = 300.0
    start_s: float = 30.0
    walltime_s: float = 0.0
    cache: FullPath | None = None
    memory_gb: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    partition: str = ""
    options: tuple[str, ...] = ()


SUBMITS = {"slurm": "sbatch", "pbs": "qsub", "htcondor": "condor_submit"}
"""Command that submits jobs to each batch system."""
SUPPORT = {
    "memory_gb": tuple(SUBMITS),
    "partition": ("slurm", "pbs"),
    "options": tuple(SUBMITS),
}
"""Batch systems that support each setting."""
GROWS_FROM = [each.name for each in fields(WorkersSettings)].index("minimum")
"""Index of the first field on autoscaling."""


@dataclass(frozen=True)
class RunsSettings:
    """Runs of applications, and their submission to Slurm.

    Attributes:
        link: Whether pages link to the runs although there are none.
        submit: Whether users with the scope `submit` may submit runs from the form.
        commands: Commands that they choose from, as `srun python /opt/astro3d.py {settings}`;
            `{settings}` becomes the path of the file of settings.
        folder: Folder in which jobs begin, and in which their settings are written.
        options: Further options of `sbatch`.
    """

    link: bool = False
    submit: bool = False
    commands: tuple[Command, ...] = ()
    folder: FullPath | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlgorithmSettings:
    """Algorithms of users, which run in the sandbox.

    Attributes:
        run: Whether jobs may run them.
        users: User ids for the programs, `FIRST:COUNT`, if the portal is root; nothing else may
            run under them.
        mode: How programs are confined: `bwrap`, `landlock`, or the first that works.
        python: Interpreter that they run with; else that of the portal.
        folders: Folders that they see besides that of the interpreter: its packages.
        programs: Number of groups of orders that run at the same time; 0 = the number of cores.
    """

    run: bool = True
    users: UserRange = ""
    mode: Mode = "auto"
    python: FullPath | None = None
    folders: tuple[FullPath, ...] = ()
    programs: Annotated[int, Field(ge=0, le=1000)] = 0

    @property
    def box(self) -> BoxSettings | None:
        """Return the sandbox for programs; `None` if they are not run."""
        if not self.run:
            return None
        python = BoxPython.here()
        if self.python is not None:
            python = BoxPython.of(self.python, self.folders)
        users = UserIds.parse(self.users) if self.users else None
        return BoxSettings(python, self.mode, users, self.programs)


@dataclass(frozen=True)
class DatasetSettings:
    """Datasets that the portal keeps up to date itself.

    Attributes:
        watch: Names of datasets. Files that arrive in a folder of this machine are catalogued when
            they are complete, those of other stores when the store is listed next.
        every_s: Seconds after which the stores of watched datasets are listed again.
    """

    watch: tuple[Annotated[str, Field(min_length=2, max_length=100)], ...] = ()
    every_s: Annotated[float, Field(ge=1, le=86_400)] = 60.0


@dataclass(frozen=True)
class Config:
    """All settings. Each field is a section of the file; `shares` has one for each user."""

    server: ServerSettings = field(default_factory=ServerSettings)
    catalog: DatabaseSettings = field(default_factory=DatabaseSettings)
    results: ResultsSettings = field(default_factory=ResultsSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    shares: Mapping[str, ShareSettings] = field(default_factory=dict)
    workers: WorkersSettings = field(default_factory=WorkersSettings)
    runs: RunsSettings = field(default_factory=RunsSettings)
    algorithms: AlgorithmSettings = field(default_factory=AlgorithmSettings)
    datasets: DatasetSettings = field(default_factory=DatasetSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    mqtt: MqttSettings = field(default_factory=MqttSettings)
    vo: ObservatorySettings = field(default_factory=ObservatorySettings)

    def at(
        self,
        host: str | None = None,
        port: int | None = None,
        *,
        workers: str | None = None,
        certificates: Path | None = None,
        insecure: bool = False,
    ) -> Config:
        """Return a copy with another address or other workers, checked again."""
        changes: dict[str, dict[str, Any]] = {
            "server": {"host": host, "port": port},
            "workers": {"url": workers, "certificates": certificates, "insecure": insecure or None},
        }
        sections = {
            name: section(
                name,
                type(part := getattr(self, name)),
                vars(part) | {key: one for key, one in keys.items() if one is not None},
            )
            for name, keys in changes.items()
        }
        return _check_together(replace(self, **sections))


def read_config(path: Path | None) -> Config:
    """Read a settings file. Without one, return the defaults, which suit a laptop.

    Raises:
        SettingsError: If the file cannot be read, or a setting is invalid.
    """
    if path is None:
        return Config()
    content = read_toml(path)
    try:
        return config_of(content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def config_of(content: Mapping[str, Any]) -> Config:
    """Return the settings of a parsed file.

    Raises:
        SettingsError: If sections or keys are unknown, or values are invalid; all are named.
    """
    kinds = get_type_hints(Config)
    errors, sections = SettingsErrors(), {}
    for name, values in content.items():
        with errors.collect():
            refuse_unknown("section", [name], kinds)
            if name != "shares":
                sections[name] = section(name, kinds[name], values)
                continue
            if not isinstance(values, Mapping):
                raise value_error(name, "sections [shares.USER]", values)
            sections[name] = {
                user: section(f"{name}.{_checked_user(user)}", ShareSettings, share)
                for user, share in values.items()
            }
    errors.check()
    results = sections.get("results", ResultsSettings())
    if results.store is not None and "folder" in content["results"]:
        raise value_error("results.store", "either this or results.folder, not both", results.store)
    return _check_together(Config(**sections))


def _checked_user(name: str) -> str:
    """Return the name of a user, if one can have it.

    Raises:
        SettingsError: If none can.
    """
    if name != "anonymous" and not USER.fullmatch(name):
        raise value_error("shares", "names of users, as [shares.ann]", name)
    return name


def _check_together(config: Config) -> Config:
    """Return settings after checking that they fit together."""
    server, access = config.server, config.access
    store, scratch = config.results.store, config.results.scratch
    if scratch is not None and store is None:
        raise value_error("results.scratch", "to come with results.store", str(scratch))
    if config.results.keep_days > config.limits.longest_days:
        longest = f"at most limits.longest_days, {config.limits.longest_days:g}"
        raise value_error("results.keep_days", longest, config.results.keep_days)
    _check_workers(config.workers)
    users = config.algorithms.users
    if users and UserIds.parse(users).count <= SPARE_USERS:
        fewest = (
            f"FIRST:COUNT, as 70000:16, with a COUNT of {SPARE_USERS + 1} or more: one id for each "
            "program and one for uploads"
        )
        raise value_error("algorithms.users", fewest, users)
    config.mail.check()
    config.mqtt.check()
    if config.mail.server and not (is_loopback(server.host) or server.url):
        raise SettingsError("server.url: is missing; mail.server needs it for the links in mails")
    if config.runs.submit:
        for name in ("commands", "folder"):
            if not getattr(config.runs, name):
                raise SettingsError(f"runs.{name}: is missing; runs.submit needs it")
    if not is_loopback(server.host) and access.tokens == "none" and not access.open:
        raise SettingsError(
            f"server.host: {server.host} can be reached from other machines, and no token is "
            "required: set access.tokens = 'required', or access.open = true to admit everyone"
        )
    if not is_loopback(server.host) and config.vo.authority == NO_AUTHORITY:
        raise SettingsError(
            f"vo.authority: expected a name of yours, found {NO_AUTHORITY!r}: other machines "
            f"would see identifiers of images, as the portal listens on {server.host}; set it "
            "to the authority that you registered, or to a domain of yours, as 'archive.example'"
        )
    return config


def _check_workers(workers: WorkersSettings) -> None:
    _check_growth(workers)
    if not workers.url:
        for name in ("certificates", "insecure", "grow"):
            if value := getattr(workers, name):
                raise value_error(f"workers.{name}", "to come with workers.url", str(value))
        return
    from swathe.workers.dask.tls import certificate_folder, read_address, security_for

    try:
        address, certificates = read_address(workers.url), workers.certificates
        certificate_folder(address, certificates, insecure=workers.insecure)
        if certificates is not None:  # others are created by the first process that needs them
            security_for(address, certificates, "portal")
            if workers.grow:  # started workers use the same folder
                security_for(address, certificates, "worker")
    except ImportError as error:
        raise SettingsError(f"workers.url: {error}; try: pip install 'swathe[cluster]'") from error
    except SettingsError as error:
        raise SettingsError(f"workers: {error}") from None


def growth_of(workers: WorkersSettings) -> GrowthLimits:
    """Return the limits of autoscaling.

    Raises:
        SettingsError: If the settings contradict each other.
    """
    from swathe.workers.autoscale.policy import GrowthLimits

    names = ("minimum", "maximum", "spare", "soon_s", "idle_s", "start_s")
    try:
        # The times end when a worker accepts no more work; it copies its cache afterwards.
        return GrowthLimits(**{name: getattr(workers, name) for name in names}, hand_over_s=0.0)
    except ValueError as error:
        raise SettingsError(f"workers.{error}") from None


def _check_growth(workers: WorkersSettings) -> None:
    if not workers.grow:
        for each in fields(workers)[GROWS_FROM:]:
            if (value := getattr(workers, each.name)) != each.default:
                shown_value = str(value) if isinstance(value, Path) else value
                raise value_error(f"workers.{each.name}", "to come with workers.grow", shown_value)
        return
    growth_of(workers)
    submits = SUBMITS.get(workers.grow, "")
    if submits or workers.walltime_s:
        least = 2 * workers.start_s
        if not max(least, 60.0) <= workers.walltime_s < math.inf:
            requirement = f"at least 60 and twice workers.start_s, {least:g}"
            raise value_error("workers.walltime_s", requirement, workers.walltime_s)
    for name, systems in SUPPORT.items():
        if workers.grow not in systems and (value_text := getattr(workers, name)):
            requirement = f"to come with workers.grow = {' or '.join(map(repr, systems))}"
            raise value_error(f"workers.{name}", requirement, value_text)
    if submits and shutil.which(submits) is None:
        raise value_error("workers.grow", f"{submits} to be found in $PATH", workers.grow)
