"""Counts and times of responses, by class of status and by route."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Message, Scope, Send

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the classes of times, seconds."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ROUTE = "swathe.route"
"""Key of a request's scope: template of its path, set by handlers that FastAPI does not call."""
OTHER = "other"
"""Method or route of requests that no handler is for."""


@dataclass
class RouteTimes:
    """Responses of one route.

    Attributes:
        statuses: number of responses by class of status, as `2xx`.
        classes: number of responses by the index of their class of times in `BOUNDS_S`.
        seconds: sum of their times.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    classes: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        """Count a response."""
        self.statuses[f"{status // 100}xx"] += 1
        self.classes[sum(seconds > bound for bound in BOUNDS_S)] += 1
        self.seconds += seconds


class ResponseCounts:
    """Responses since the portal started. Only the event loop counts; any thread may read."""

    def __init__(self) -> None:
        """Start at zero."""
        self._classes: Counter[int] = Counter()
        self._routes: dict[tuple[str, str], RouteTimes] = {}

    def add(self, status: int, method: str, route: str, seconds: float) -> None:
        """Count a response."""
        self._classes[status // 100] += 1
        method = method if method in METHODS else OTHER
        self._routes.setdefault((method, route), RouteTimes()).add(status, seconds)

    def by_class(self) -> dict[str, int]:
        """Return the number of responses of each class, as `2xx`."""
        return {f"{number}xx": self._classes[number] for number in range(1, 6)}

    def by_route(self) -> Mapping[tuple[str, str], RouteTimes]:
        """Return the responses by method and route; the dictionary does not change later."""
        return dict(self._routes)


def route_of(scope: Scope) -> str:
    """Return the template of the path that a request was for, as `/api/jobs/{job_id}`.

    The number of templates is bounded, that of paths is not: anybody may ask for any path.
    """
    if ROUTE in scope:
        return str(scope[ROUTE])
    path = getattr(scope.get("route"), "path", None)
    if not isinstance(path, str):
        return OTHER
    prefix = scope.get("root_path", "").removeprefix(scope.get("app_root_path", ""))
    return f"{prefix}{path}"


def count_responses(send: Send, scope: Scope, counts: ResponseCounts) -> Send:
    """Return a `send` that counts the response, with the time until it begins.

    The time until it ends depends on the client: on how fast it reads, and how long it listens.
    """
    start_s = time.monotonic()

    async def send_and_count(message: Message) -> None:
        if message["type"] == "http.response.start":
            seconds = time.monotonic() - start_s
            counts.add(message["status"], scope["method"], route_of(scope), seconds)
        await send(message)

    return send_and_count
