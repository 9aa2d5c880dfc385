"""Checks of the machine: address, clock, disk, sandbox."""

from __future__ import annotations

import shutil
import stat
import time
from typing import TYPE_CHECKING

import httpx

from swathe import sandbox as sandboxes
from swathe.core.errors import SettingsError, SwatheError
from swathe.core.format import seconds_text, size_text
from swathe.core.host import in_url
from swathe.portal.app import ProgramCheck, place_of
from swathe.portal.config import AlgorithmSettings
from swathe.portal.doctor.check import Check, State
from swathe.portal.health import LEAST_BYTES, can_write, results_folder
from swathe.portal.serve import listen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.catalog import Catalog
    from swathe.portal.config import Config

WATCH_S = 0.5
"""Time for which the clocks of this machine are compared."""
STEP_S = 0.05
"""Difference in this time that no correction of the rate of a clock makes."""
LATE_S = 5.0
"""Difference of clocks that makes times of jobs wrong, and that tokens and signatures bear."""
WRONG_S = 300.0
"""Difference of clocks with which stores refuse signatures."""
ANSWER_S = 10.0


def address(config: Config) -> Check:
    """Check whether the portal can listen on its address, or listens already."""
    server = config.server
    place = f"{in_url(server.host)}:{server.port}"
    try:
        listen(config).close()
    except SettingsError as error:
        return _running(config, place) or Check(
            "address", "FAIL", str(error), "choose another server.port, or stop what listens there"
        )
    return Check("address", "OK", f"{place}: free; no portal runs there")


def _running(config: Config, place: str) -> Check | None:
    """Return the state of the portal that runs on an address; `None` if none does."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.server.host, config.server.host)
    url = f"http://{in_url(host)}:{config.server.port}/readyz"
    try:
        answer = httpx.get(url, timeout=ANSWER_S, trust_env=False)
        parts = answer.json()
        is_ready = parts["ready"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None  # something else listens there
    if is_ready is True:
        return Check("address", "OK", f"{place}: a portal runs there, and is ready")
    failing = [name for name, state in parts.items() if state == "trouble"]
    return Check(
        "address",
        "FAIL",
        f"{place}: a portal runs there, and is not ready: {', '.join(failing)}",
        "see the other checks, and the log of the portal",
    )


def clocks(server_offset_s: float | None) -> Iterator[Check]:
    """Check that the clock of this machine is not being set, and agrees with the database."""
    start_s, start = time.monotonic(), time.time()
    time.sleep(WATCH_S)
    step_s = (time.time() - start) - (time.monotonic() - start_s)
    if abs(step_s) > STEP_S:
        yield Check(
            "clock",
            "WARN",
            f"the clock of this machine was set by {seconds_text(abs(step_s))} just now",
            "let NTP slew the clock (chrony, systemd-timesyncd), and set it by hand no more",
        )
    else:
        yield Check("clock", "OK", "the clock of this machine runs evenly")
    if server_offset_s is not None:
        yield clock_check("clock of the database", server_offset_s)


def clock_check(name: str, offset_s: float) -> Check:
    """Return the check of a clock that is ahead of that of this machine by some seconds."""
    way = "ahead of" if offset_s > 0 else "behind"
    text = f"{seconds_text(abs(offset_s))} {way} that of this machine"
    if abs(offset_s) <= LATE_S:
        return Check(name, "OK", text)
    state: State = "FAIL" if abs(offset_s) > WRONG_S else "WARN"
    return Check(name, state, text, "run NTP (chrony, systemd-timesyncd) on both machines")


def results(config: Config, catalog: Catalog | None) -> Check:
    """Check that results can be stored: folder or store, permissions and space."""
    folder = results_folder(config)
    remedy = "see [results] of the settings"
    if catalog is not None:
        try:
            place_of(config, catalog)
        except (SwatheError, OSError) as error:
            return Check("results", "FAIL", str(error), remedy)
    elif not folder.exists():
        return Check("results", "OK", f"{folder}: made when the portal starts")
    if not can_write(folder):
        return Check("results", "FAIL", f"{folder}: cannot be written", remedy)
    usage = shutil.disk_usage(folder)
    text = f"{folder}: {size_text(usage.free)} of {size_text(usage.total)} free"
    if usage.free < LEAST_BYTES:
        return Check("results", "FAIL", text, "free some space: jobs end with errors")
    if usage.free < config.limits.result_gb * 1e9:
        return Check(
            "results",
            "WARN",
            f"{text}, less than limits.result_gb of one user, {config.limits.result_gb:g}",
            "lower limits.result_gb, or take a larger disk",
        )
    if config.results.store is None and folder.stat().st_mode & stat.S_IWOTH:
        return Check("results", "WARN", f"{text}; other users may write there", "run: chmod o-w")
    return Check("results", "OK", text)


def sandbox(config: Config) -> Check:
    """Check that programs of users can be confined, as `swathe sandbox check` does."""
    settings = config.algorithms
    if settings.box is None:
        return Check("sandbox", "OK", "algorithms.run is false: no programs of users are run")
    if config.workers.url:
        return Check("sandbox", "OK", "programs of users run on workers: check it there")
    modes = [each.mode for each in sandboxes.check(settings.box.users).modes if each.holds]
    fault = ProgramCheck(config).fault()
    if not fault:
        return Check("sandbox", "OK", f"{' and '.join(modes)}: programs of users are run")
    # Without settings of their own the portal starts, and refuses algorithms.
    state: State = "WARN" if settings == AlgorithmSettings() else "FAIL"
    return Check(
        "sandbox", state, fault, "run `swathe sandbox check`, or set algorithms.run = false"
    )
