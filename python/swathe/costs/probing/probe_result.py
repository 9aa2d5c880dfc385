"""What a probe of a store found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from swathe.catalog import this_host
from swathe.costs.cost_model import Costs, Profile, Sample
from swathe.costs.fit.robust_stats import counts_of
from swathe.costs.probing.probe_schedule import ProbeParameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swathe.costs.probing.reader_protocol import Timing
    from swathe.costs.probing.write_stages import WriteStages


Bound: TypeAlias = Literal["link", "disk", "server"]
StripeBound: TypeAlias = Literal["cpu", "client_line", "link", "disk", "server"]


@dataclass(frozen=True)
class ServerRate:
    """What a server of a striped store gives. Rates in bytes per second.

    Attributes:
        server: the server, as `NAME:prefix` or URL.
        streams: number of requests in flight that gave most.
        alone_bytes_per_s: rate while the others are idle; 0 if it was not measured.
        together_bytes_per_s: rate while all are read.
        bound: what bounds it alone: `link`, `disk`, or `server`, also if that is not known.
        disk: the disk that bounds it.
        is_block_server: whether it is a block server, which says what bounds it.
        why: reason if it could not be measured.
        is_reachable: whether it answers.
    """

    server: str
    streams: int = 0
    alone_bytes_per_s: float = 0.0
    together_bytes_per_s: float = 0.0
    bound: Bound | None = None
    disk: str = ""
    is_block_server: bool = False
    why: str | None = None
    is_reachable: bool = True


@dataclass(frozen=True)
class StripeProbe:
    """The servers of a striped store, and what bounds their sum. Rates in bytes per second.

    Attributes:
        sum_bytes_per_s: rates of the servers alone, added.
        together_bytes_per_s: rate of all servers read at the same time.
        expected_bytes_per_s: rate of the store by the rates of its servers alone; 0 if too few
            servers answer.
        stripe_bytes_per_s: measured rate of the store; None if the limits of the probe are too low
            for whole stripes.
        cpu_share: processor time of this process in all its cores, while the store was read.
        bound: `cpu` of this machine; `client_line`, the line of this machine, or what else all
            servers share; `link`, `disk` or `server`.
        bound_server: the server that it is the bound of; empty if it is all of them.
        text: the same in words.
    """

    servers: list[ServerRate]
    sum_bytes_per_s: float
    together_bytes_per_s: float
    expected_bytes_per_s: float
    stripe_bytes_per_s: float | None
    cpu_share: float
    bound: StripeBound
    bound_server: str
    text: str
    elapsed_s: float
    bytes_moved: int
    requests: int

    def server_rates(self) -> dict[str, float]:
        """Return the rate of each server alone, bytes per second, of those that answered."""
        return {
            each.server: each.alone_bytes_per_s
            for each in self.servers
            if each.why is None and each.alone_bytes_per_s
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)


@dataclass
class Probe:
    """Result of a probe.

    Attributes:
        root: key of the store in the catalogue.
        label: name given by the user.
        cache: for local files, whether their bytes were in memory: `warm`, `cold`, `mixed`,
            `unknown`; for others `remote`.
        end_reason: reason for the end: `precise`, `rounds`, `seconds` or `bytes`.
        writing: costs of writing, a `request` being an object; None if not measured.
        stages: parts of a write, each with its time; None if not measured.
        stripe: servers of a striped store; None of other stores.
        compute: computing costs of this machine, seconds; None if they were not looked up.
    """

    root: str
    label: str
    parameters: ProbeParameters
    samples: list[Sample]
    profile: Profile
    elapsed_s: float
    bytes_moved: int
    requests: int
    cache: str
    end_reason: str
    host: str = field(default_factory=this_host)
    notes: list[str] = field(default_factory=list)
    writing: Costs | None = None
    stages: WriteStages | None = None
    stripe: StripeProbe | None = None
    compute: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all but the samples, for JSON."""
        return {
            "root": self.root,
            "label": self.label,
            "host": self.host,
            "costs": self.profile.costs.as_dict(),
            "spread": self.profile.spread,
            "writing": None if self.writing is None else self.writing.as_dict(),
            "stages": None if self.stages is None else self.stages.as_dict(),
            "stripe": None if self.stripe is None else self.stripe.as_dict(),
            "notes": [*self.profile.notes, *self.notes],
            "rejected": self.profile.rejections,
            "samples": len(self.samples),
            "elapsed_s": self.elapsed_s,
            "bytes": self.bytes_moved,
            "requests": self.requests,
            "cache": self.cache,
            "stopped": self.end_reason,
            "parameters": self.parameters.as_dict(),
            "compute": self.compute,
        }


def read_table(
    samples: Iterable[Sample], costs: Costs
) -> dict[int, dict[int, tuple[float, float]]]:
    """Return MB/s by request size and number of streams: median measured, and the model's."""
    groups: dict[tuple[int, int], list[Sample]] = {}
    for sample in samples:
        if sample.kind == "read":
            size = sample.bytes // sample.requests
            groups.setdefault((size, sample.streams), []).append(sample)
    table: dict[int, dict[int, tuple[float, float]]] = {}
    for (size, streams), alike in sorted(groups.items()):
        rates = [sample.bytes / sample.elapsed_s / 1e6 for sample in alike]
        alike_bytes, requests, _ = counts_of(alike)
        model = alike_bytes / costs.read_s(alike_bytes, requests, streams) / 1e6
        table.setdefault(size, {})[streams] = float(np.median(rates)), float(np.median(model))
    return table


def sample_of(timings: Sequence[Timing], asked_bytes: int, streams: int) -> Sample:
    """Return requests that were sent together as one sample."""
    start_s = min(timing.start_s for timing in timings)
    return Sample(
        "read",
        sum(timing.bytes for timing in timings),
        max(timing.end_s for timing in timings) - start_s,
        requests=len(timings),
        streams=streams,
        first_byte_s=min(timing.first_byte_s for timing in timings) - start_s,
        asked_bytes=asked_bytes,
    )
