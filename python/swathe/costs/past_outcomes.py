"""Earlier outcomes on this host, which correct predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.catalog.outcome_log import OutcomeLog
from swathe.catalog.recent_outcomes import RECENT, recent_outcomes
from swathe.core.host import this_host
from swathe.core.paths import default_url
from swathe.stores.registry import LOCAL_ROOT, catalogue_state

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.catalog import Outcome


@dataclass
class PastOutcomes:
    """Outcomes of a catalogue that say something of the model, oldest first.

    Attributes:
        state: state of the catalogue when they were read.
        outcomes: those in the catalogue, and those in its log up to `end`.
        probe_times: when each store was last probed.
        end: bytes of the log that were read.
    """

    state: object
    outcomes: list[Outcome]
    probe_times: dict[str, datetime]
    end: int = 0
    _by_root: dict[str, list[Outcome]] = field(default_factory=dict)

    def of(self, root: str) -> list[Outcome]:
        """Return the outcomes of a store since its last probe."""
        if root not in self._by_root:
            since = self.probe_times.get(root)
            self._by_root[root] = [
                each
                for each in self.outcomes
                if each.root == root and (since is None or each.at > since)
            ]
        return self._by_root[root]

    def add(self, outcomes: list[Outcome]) -> None:
        """Add outcomes that came later."""
        host = this_host()
        self.outcomes += [each for each in outcomes if each.host == host and each.model_s > 0]
        del self.outcomes[:-RECENT]
        self._by_root.clear()


_past: PastOutcomes | None = None


def past_outcomes() -> PastOutcomes:
    """Return the outcomes of this host in the catalogue and in its log.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    global _past
    url = default_url()
    state, log = catalogue_state(url), OutcomeLog.of(url)
    is_shorter = _past is not None and log is not None and log.size() < _past.end
    if _past is None or _past.state != state or is_shorter:
        _past = PastOutcomes(state, *_in_catalogue(url, state))
    if log is not None and log.size() > _past.end:
        lines, _past.end = log.lines_from(_past.end)
        _past.add(log.parse(lines))
    return _past


def root_of(key: str) -> str:
    """Return the root of a store in the catalogue by the key that the engine has."""
    return LOCAL_ROOT if key == "file://" else key


def _in_catalogue(url: str, state: object) -> tuple[list[Outcome], dict[str, datetime]]:
    if state is None:
        return [], {}
    if OutcomeLog.of(url) is not None:
        return recent_outcomes(url.partition(":///")[2], this_host())
    from swathe.catalog import Catalog

    host = this_host()
    with Catalog.open(url) as catalog:
        outcomes = [each for each in catalog.outcomes(RECENT) if each.host == host][::-1]
        probe_times = {probe.root: probe.at for probe in catalog.probes(host=host)[::-1]}
    return [each for each in outcomes if each.model_s > 0], probe_times
