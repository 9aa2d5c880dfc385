"""Each benchmark works: a little of it runs, as `make bench-NAME ARGS=--smoke`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHES = ROOT / "benches"
LEAST = {
    "algorithm_groups": (),
    "capi": (),
    "block_server": (),
    "experiments": ("--only", "ramp-portal", "--only", "ramp-hosts", "--only", "records"),
    "find": (),
    "first_picture": (),
    "items": (),
    "formats": (),
    "format_predictions": (),
    "lifelines": (),
    "long_job": (),
    "order_kills": (),
    "order_predictions": (),
    "order_study": (),
    "many_clients": (),
    "plan": ("--only", "latency"),
    "portal": (),
    "profiles": (),
    "python_stores": (),
    "reduce": (),
    "random_links": (),
    "simulated_links": (),
    "repeated_cuts": (),
    "replicas": (),
    "run_failover": (),
    "run_overlap": (),
    "server_copies": (),
    "run_predictions": (),
    "run": ("--only", "plain", "--only", "archives", "--only", "gz_first_touch"),
    "run_study": (),
    "run_writes": (),
    "simulate": (),
    "sky_map": (),
    "startup": (),
    "subscription_kills": (),
    "subscriptions": (),
    "superfile": (),
    "striped": tuple(
        word
        for part in ("links", "write", "local", "cuts", "tuning", "repair", "peers")
        for word in ("--only", part)
    ),
    "switch_interval": (),
    "tracing": (),
    "workers": (),
}
"""What is run of each; hosts.py needs root."""
AS_ROOT = {"order_study"}
"""Those that make control groups."""
BEHIND_LINKS = {
    *("block_server", "experiments", "first_picture", "formats", "many_clients", "plan"),
    *("random_links", "repeated_cuts", "replicas", "run_failover", "run_overlap", "run_study"),
    *("server_copies", "striped", "superfile"),
}
"""Those that need nginx and the proxy."""
PARTS = {"choices", "comparisons", "contenders", "harness", "links", "peers", "portal_load"} | {
    "control_group", "format_peers", "link_windows", "portal_plain", "records", "remote_peers",
    "stripe_cuts", "stripe_floor", "stripe_lab", "stripe_peers", "stripe_repair", "stripe_systems",
    "subject",
}  # fmt: skip
"""What the others use."""


@pytest.mark.more
@pytest.mark.parametrize("name", LEAST)
def test_a_little_of_a_benchmark_runs(name: str) -> None:
    if name in BEHIND_LINKS and not (shutil.which("nginx") and shutil.which("cargo")):
        pytest.skip("nginx, or cargo, which builds the proxy, is not installed")
    if name in AS_ROOT and os.geteuid() != 0:
        pytest.skip("only root may make control groups")
    command = [sys.executable, str(BENCHES / f"{name}.py"), "--smoke", *LEAST[name]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout


def test_functions_of_the_engine_that_a_benchmark_counts_exist() -> None:
    functions = re.findall(r'"swathe_engine::(\w+)::(\w+)"', (BENCHES / "tracing.py").read_text())
    assert functions
    for module, function in functions:
        assert f"fn {function}(" in (ROOT / f"crates/engine/src/{module}.rs").read_text()


def test_each_benchmark_is_run_by_a_test() -> None:
    assert {path.stem for path in BENCHES.glob("*.py")} == {*LEAST, *PARTS, "hosts"}
