"""`swathe stripe plan`: servers, disks, rates and price, from measured stores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import swathe
from swathe.catalog import Catalog, this_host
from swathe.core.errors import NoSuchStoreError, OptionError
from swathe.costs.cost_model import Costs
from swathe.stores.stripe_plan import read_rate
from tests.support.fits_frames import Runner
from tests.support.stripes import add_stripe

MB = 1e6


def measure(rates_mb_s: dict[str, float]) -> None:
    """File profiles of these stores, with these rates."""
    with Catalog.open() as catalog:
        for name, rate in rates_mb_s.items():
            costs = Costs(0.0, 0.0, ((4096, 0.001), (8192, 0.002)), rate * MB, 9e14, 4)
            now = datetime.now(UTC)
            catalog.put_profile(catalog.store(name).key, this_host(), costs.as_dict(), {}, now)


def rate_by_bisection(rates: list[float], data: int) -> float:
    """The largest R with sum(min(rate, R / data)) >= R."""
    low, high = 0.0, sum(rates) * 2
    for _ in range(200):
        middle = (low + high) / 2
        if sum(min(rate, middle / data) for rate in rates) >= middle * (1 - 1e-13):
            low = middle
        else:
            high = middle
    return low


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=32), st.data())
def test_the_rate_is_the_largest_that_shares_allow(rates: list[float], draw: Any) -> None:
    data = draw.draw(st.integers(1, len(rates)))
    assert read_rate(rates, data) == pytest.approx(rate_by_bisection(rates, data), rel=1e-6)


def test_rates_of_some_stripes() -> None:
    assert read_rate([14.25] * 5, 4) == pytest.approx(71.25)
    assert read_rate([14.25] * 4 + [1.425], 4) == pytest.approx(58.425)
    assert read_rate([10, 20, 40], 3) == pytest.approx(30)
    assert read_rate([10, 20, 40], 1) == pytest.approx(70)
    with pytest.raises(ValueError, match="expected at least 2"):
        read_rate([], 2)


def test_servers_disks_and_price(run: Runner, tmp_path: Path) -> None:
    add_stripe(tmp_path)
    with pytest.raises(OptionError, match=r"expected a measured server; first: swathe probe NAME"):
        swathe.stores.plan_stripe(100, 1)
    with pytest.raises(
        OptionError, match=r"expected a measured server; first: swathe probe wide \("
    ):
        swathe.stores.plan_stripe(100, 1, store="wide")
    measure({"disk-a": 14.25, "disk-b": 14.25, "disk-c": 20.0})
    plan = swathe.stores.plan_stripe(100, 100, prices={"server": 1000, "disk": 300})
    assert (plan.servers, plan.parity) == (8, 1)
    assert plan.measured == {
        name: pytest.approx(rate)
        for name, rate in [("disk-a", 14.25e6), ("disk-b", 14.25e6), ("disk-c", 20e6)]
    }
    assert plan.raw_tb == pytest.approx(100 * 8 / 7)
    assert plan.disks == 8  # of 20 TB, each server at least one
    assert plan.read_bytes_per_s == pytest.approx(8 * 14.25e6)
    assert plan.degraded_bytes_per_s == plan.write_bytes_per_s == pytest.approx(7 * 14.25e6)
    assert plan.price == 8 * 1000 + 8 * 300
    assert plan.store_bytes_per_s is None
    assert swathe.stores.plan_stripe(100, 100, disk_tb=4).disks == 8 * 4
    assert swathe.stores.plan_stripe(1, 1, parity=3).servers == 6
    assert swathe.stores.plan_stripe(1, 1, parity=18).servers == 32


def test_a_plan_from_the_servers_of_a_store(run: Runner, tmp_path: Path) -> None:
    add_stripe(tmp_path, parity=2)
    measure({"disk-a": 10.0, "disk-b": 10.0, "disk-c": 10.0, "disk-d": 10.0})
    assert swathe.stores.plan_stripe(25, 1, store="wide").store_bytes_per_s is None
    measure({"disk-e": 1.0})
    plan = swathe.stores.plan_stripe(25, 1, store="wide")
    assert (plan.servers, plan.parity) == (4, 2)
    assert plan.store_bytes_per_s == pytest.approx(41e6)
    out = run("stripe", "plan", "wide", "--mb-s", 25, "--tb", 1, "--disk-price", 80)
    assert "4 servers, 2 data + 2 parity, each of 10 MB/s (median of 5 stores measured)" in out
    assert "4 disks of 20 TB for 2 TB with parity" in out
    assert (
        "expected: reading 40 MB/s, with 2 servers lost 20 MB/s; writing 20 MB/s, with at most 1"
        in out
    )
    assert "expected of the store as it is: reading 41 MB/s" in out
    assert "price 4 x 80 = 320" in out
    assert run.json("stripe", "plan", "wide", "--mb-s", 25, "--tb", 1)["servers"] == 4
    measure({"wide": 30.0})  # they share a line
    assert swathe.stores.plan_stripe(25, 1, store="wide").store_bytes_per_s == pytest.approx(30e6)
    measure({"disk-e": 1.0})  # later, as of another server in its place
    assert swathe.stores.plan_stripe(25, 1, store="wide").store_bytes_per_s == pytest.approx(41e6)
    measure({"wide": 50.0})
    assert swathe.stores.plan_stripe(25, 1, store="wide").store_bytes_per_s == pytest.approx(41e6)


@pytest.mark.more
def test_the_probe_of_a_striped_store_suffices(run: Runner, tmp_path: Path) -> None:
    """One server is a store, the others are given by their folders and have no name."""
    with pytest.raises(OptionError, match="first: swathe store add"):
        swathe.stores.plan_stripe(100, 1)
    folders = [tmp_path / name for name in ("disk-a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    swathe.stores.add("disk-a", str(folders[0]))
    over = ["disk-a", *map(str, folders[1:])]
    swathe.stores.add("wide", "striped:", over=over, block_bytes=4096)
    (tmp_path / "object").write_bytes(bytes(3_000_000))
    run("put", tmp_path / "object", "wide:")
    probe = swathe.probe("wide", quick=True, max_time_s=1.0, max_bytes=30_000_000)
    assert probe.stripe is not None
    rates = {each.server: each.alone_bytes_per_s for each in probe.stripe.servers}
    assert swathe.stores.plan_stripe(1, 1, store="wide").measured == rates
    names = {place.rstrip(":"): rate for place, rate in rates.items()}
    assert swathe.stores.plan_stripe(1, 1).measured == names
    assert "servers" in run("stripe", "plan", "wide", "--mb-s", 1, "--tb", 1)
    # What a server's own probe measured counts more.
    measure({"disk-a": 14.25})
    assert swathe.stores.plan_stripe(1, 1).measured == names | {"disk-a": pytest.approx(14.25e6)}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--mb-s", value) for value in ("0", "-5", "nan", "inf", "1e300", "x")),
        *(("--tb", value) for value in ("0", "1e300")),
        *(("--disk-tb", value) for value in ("0", "1e-300")),
        ("--server-price", "-1"),
        ("--disk-price", "-3"),
    ],
)
def test_wrong_numbers_are_usage_errors(run: Runner, option: str, value: str) -> None:
    _, text = run.told("stripe", "plan", "--mb-s", 1, "--tb", 1, option, value, code=2)
    assert option in text and "from 1e-06 to 1e+09" in text


def test_wrong_arguments_are_refused(run: Runner, tmp_path: Path) -> None:
    add_stripe(tmp_path)
    measure({"disk-a": 10.0})
    with pytest.raises(OptionError, match=r"at most 320 MB/s, 32 servers of 10 MB/s; found 1 GB/s"):
        swathe.stores.plan_stripe(1000, 1)
    with pytest.raises(OptionError, match="prices: expected server and disk, found 'rack'"):
        swathe.stores.plan_stripe(1, 1, prices={"rack": 1})
    with pytest.raises(ValueError, match="mb_s: expected a finite number above 0"):
        swathe.stores.plan_stripe(0, 1)
    with pytest.raises(OptionError, match=r"tb: expected 1e-06 to 1e\+09, found 1e\+300"):
        swathe.stores.plan_stripe(1, 1e300)
    with pytest.raises(ValueError, match="parity: expected 0 to 31"):
        swathe.stores.plan_stripe(1, 1, parity=32)
    with pytest.raises(OptionError, match="disk-a: expected a striped store"):
        swathe.stores.plan_stripe(1, 1, store="disk-a")
    with pytest.raises(NoSuchStoreError):
        swathe.stores.plan_stripe(1, 1, store="nowhere")
    assert "expected a measured server" not in run("stripe", "plan", "--mb-s", 1, "--tb", 1)
