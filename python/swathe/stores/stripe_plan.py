"""Plan a striped store: servers, disks, expected rates and price."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.catalog.store_settings import DEFAULT_PARITY, MOST_SERVERS
from swathe.core.argument_checks import check_count, check_positive, check_text
from swathe.core.errors import OptionError
from swathe.core.format import rate_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from swathe.catalog import Catalog, Store

DISK_TB = 20.0
"""Usual size of a disk."""
PRICES = ("server", "disk")
LEAST_QUANTITY, MOST_QUANTITY = 1e-6, 1e9
"""Limits of rates (MB/s), sizes (TB) and prices: what follows from them is finite."""
MB = 1e6
SERVER_RATES = "server_bytes_per_s"
"""Entry of the parameters of a striped store's probe: rate of each server alone, by its place."""


@dataclass(frozen=True)
class StripePlan:
    """A striped store for a rate and a size.

    Attributes:
        servers: number of servers.
        parity: number of servers that may be lost.
        disks: number of disks, on all servers.
        disk_tb: size of a disk, TB.
        raw_tb: size of all parts, with parity, TB.
        server_bytes_per_s: rate of one server: the median of those measured.
        read_bytes_per_s: expected rate of reading.
        degraded_bytes_per_s: the same with as many servers lost as may be.
        write_bytes_per_s: expected rate of writing, if a server writes as fast as it reads.
        measured: rate of each measured store, bytes per second.
        price: price of servers and disks; `None` without unit prices.
        store_bytes_per_s: expected rate of reading of the store as it is: that of its servers, and
            at most what a later probe of the store measured. `None` without a store, or if one of
            its servers was not measured.
    """

    servers: int
    parity: int
    disks: int
    disk_tb: float
    raw_tb: float
    server_bytes_per_s: float
    read_bytes_per_s: float
    degraded_bytes_per_s: float
    write_bytes_per_s: float
    measured: dict[str, float]
    price: float | None
    store_bytes_per_s: float | None


def plan_stripe(
    mb_s: float,
    tb: float,
    *,
    store: str | None = None,
    parity: int | None = None,
    disk_tb: float = DISK_TB,
    prices: Mapping[str, float] | None = None,
) -> StripePlan:
    """Return the servers and disks for a rate of reading and a size, from the probes of stores.

    Example:
        >>> swathe.stores.plan_stripe(100, 40, prices={"server": 1500, "disk": 300}).servers

    Args:
        mb_s: rate of reading, MB/s.
        tb: size of the objects, TB.
        store: striped store whose servers are meant; by default all stores that were measured from
            this machine, and can be written to.
        parity: number of servers that may be lost; by default that of the store, else 1.
        disk_tb: size of a disk, TB.
        prices: price of a `server` without disks and of a `disk`, in any currency.

    Raises:
        OptionError: If no server was measured, no number of servers suffices, or an argument is
            invalid.
        NoSuchStoreError: If there is no such store.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog

    target_bytes_per_s = _check_quantity("mb_s", mb_s) * MB
    size_tb, disk_tb = _check_quantity("tb", tb), _check_quantity("disk_tb", disk_tb)
    unit_prices = _check_prices(prices)
    with Catalog.open() as catalog:
        stripe = None if store is None else _stripe_of(catalog, check_text("store", store))
        rates = server_rates(catalog, _servers(catalog, stripe))
        most_bytes_per_s = math.inf if stripe is None else _measured_rate(catalog, stripe)
    known_rates = {name: rate for name, rate in rates.items() if rate is not None}
    if not known_rates:
        raise OptionError(
            f"plan: expected a measured server; first: {_first_command(stripe, rates)}"
        )
    if parity is None:
        parity = DEFAULT_PARITY if stripe is None else stripe.parity
    check_count("parity", parity, MOST_SERVERS - 1, 0)
    rate = statistics.median(known_rates.values())
    # Where more than half of the servers are lost, no object can be read, whatever the parity.
    least = max(parity + 1, min(2 * parity, MOST_SERVERS))
    servers = max(math.ceil(target_bytes_per_s / rate), least)
    if servers > MOST_SERVERS:
        raise OptionError(
            f"plan: expected at most {rate_text(MOST_SERVERS * rate)}, {MOST_SERVERS} servers of "
            f"{rate_text(rate)}; found {rate_text(target_bytes_per_s)}"
        )
    data = servers - parity
    raw_tb = size_tb * servers / data
    disks = servers * math.ceil(raw_tb / servers / disk_tb)
    is_known = stripe is not None and len(known_rates) == len(rates)
    return StripePlan(
        servers=servers,
        parity=parity,
        disks=disks,
        disk_tb=disk_tb,
        raw_tb=raw_tb,
        server_bytes_per_s=rate,
        read_bytes_per_s=servers * rate,
        degraded_bytes_per_s=data * rate,
        write_bytes_per_s=data * rate,
        measured=known_rates,
        price=None if not unit_prices else _price(unit_prices, servers, disks),
        store_bytes_per_s=(
            min(read_rate(list(known_rates.values()), len(rates) - stripe.parity), most_bytes_per_s)
            if stripe is not None and is_known
            else None
        ),
    )


def read_rate(rates: Sequence[float], data: int) -> float:
    """Return the rate of reading over servers of these rates, of which `data` suffice.

    A part is 1/data of an object, so a server gives at most that share of the rate: the largest R
    with R = sum(min(rate, R / data)).

    Args:
        rates: bytes per second of each server, at least `data` of them.
        data: number of servers whose parts suffice, at least 1.

    Raises:
        ValueError: If there are fewer servers than that.
    """
    if len(rates) < data:
        raise ValueError(f"rates: expected at least {data}, found {len(rates)}")
    slowest_first = sorted(rates)
    for whole in range(data):
        # So many of the fastest servers give their whole share; the others what they can.
        others = slowest_first[: len(rates) - whole]
        rate = sum(others) * data / (data - whole)
        if others[-1] <= rate / data:
            break
    return rate


def _stripe_of(catalog: Catalog, name: str) -> Store:
    store = catalog.store(name)
    if not store.over:
        raise OptionError(f"{name}: expected a striped store, found {store.url}")
    return store


def _servers(catalog: Catalog, stripe: Store | None) -> dict[str, Store]:
    """Return the stores that are meant, by the name of the server."""
    if stripe is not None:
        return {server.place: server.store for server in stripe.over}
    stores = catalog.stores()
    servers = {store.name: store for store in stores if not store.over and store.kind.is_writable}
    for each in stores:
        servers |= {server.place: server.store for server in each.over if server.is_url}
    return servers


def server_rates(catalog: Catalog, servers: Mapping[str, Store]) -> dict[str, float | None]:
    """Return the measured rate of each server, bytes per second; None if it was not measured.

    It is that of its own probe, else what the last probe of a striped store over it measured.
    """
    from swathe.catalog import this_host
    from swathe.stores.registry import LOCAL_ROOT

    below_stripes = _rates_below_stripes(catalog)
    rates: dict[str, float | None] = {}
    for place, store in servers.items():
        profile = catalog.profile(store.key, this_host())
        rate = below_stripes.get(store.key)
        if profile is None and rate is None and store.kind.is_local:
            profile = catalog.profile(LOCAL_ROOT, this_host())
        rates[place] = rate if profile is None else float(profile.costs["total_bytes_per_s"])
    return rates


def _measured_rate(catalog: Catalog, stripe: Store) -> float:
    """Return what the last probe of a striped store measured of it.

    It is less than its servers give where they share a line, a disk or the processor. It is
    infinity if there was none, or one of its servers was measured later.
    """
    from swathe.catalog import this_host

    profile = catalog.profile(stripe.key, this_host())
    servers = [catalog.profile(server.store.key, this_host()) for server in stripe.over]
    if profile is None or any(each and each.fitted_at > profile.fitted_at for each in servers):
        return math.inf
    return float(profile.costs["total_bytes_per_s"])


def _rates_below_stripes(catalog: Catalog) -> dict[str, float]:
    """Return what probes of striped stores measured of each server alone, by key of its store."""
    from swathe.catalog import this_host

    probes = [
        (stripe, probe)
        for stripe in catalog.stores()
        if stripe.over
        for probe in catalog.probes(stripe.key, this_host())[:1]
    ]
    probes.sort(key=lambda each: each[1].at)
    rates: dict[str, float] = {}
    for stripe, probe in probes:
        server_rates = probe.parameters.get(SERVER_RATES, {})
        for server in stripe.over:
            if rate := server_rates.get(server.place):
                rates[server.store.key] = float(rate)
    return rates


def _first_command(stripe: Store | None, servers: Collection[str]) -> str:
    """Return the command that measures servers."""
    if stripe is not None:
        return f"swathe probe {stripe.name} (it must hold an object)"
    if servers:
        return "swathe probe NAME, of a store that can be written to or of a striped store"
    return "swathe store add NAME URL, then swathe probe NAME"


def _check_quantity(name: str, value: float) -> float:
    number = check_positive(name, value)
    if not LEAST_QUANTITY <= number <= MOST_QUANTITY:
        raise OptionError(
            f"{name}: expected {LEAST_QUANTITY:g} to {MOST_QUANTITY:g}, found {number:g}"
        )
    return number


def _check_prices(prices: Mapping[str, float] | None) -> dict[str, float]:
    valid_prices = {}
    for name, value in (prices or {}).items():
        if name not in PRICES:
            raise OptionError(f"prices: expected {' and '.join(PRICES)}, found {name!r}")
        valid_prices[name] = _check_quantity(f"prices[{name!r}]", value)
    return valid_prices


def _price(prices: Mapping[str, float], servers: int, disks: int) -> float:
    return servers * prices.get("server", 0.0) + disks * prices.get("disk", 0.0)
