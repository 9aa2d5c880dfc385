"""Requests with JSON to a staging service over HTTP, patient when it is busy."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from swathe.core.errors import AccessError, NotFoundError, StagingError
from swathe.core.format import seconds_text, size_text
from swathe.core.value_errors import short_text
from swathe.stores.staging.answers import one_line, parse_json

CONNECT_S, ANSWER_S = 10.0, 120.0
"""Seconds for a connection, and for a whole answer from the request on."""
BUSY = (429, 503)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 120.0
MOST_BUSY_S = 900.0
"""Seconds that a busy service is asked again for, before the call fails."""
MOST_BYTES = 16 << 20
"""Longest answer, in bytes."""


@dataclass
class _Answer:
    """An answer as far as it has come.

    Attributes:
        error: why there is none.
    """

    status: int = 0
    retry_after: str = "0"
    content: bytearray = field(default_factory=bytearray)
    error: Exception | None = None


def pause_s(number: int, rng: random.Random, first_s: float, longest_s: float) -> float:
    """Return the pause after some tries: twice as long each time, up to half of it by chance."""
    length_s: float = min(longest_s, first_s * 2.0 ** min(number, 60))
    return length_s * (1 - rng.random() / 2)


def host_of(url: str) -> str | None:
    """Return the host that requests to a URL go to; `None` if it is no URL."""
    import httpx

    try:
        return httpx.URL(url).host
    except httpx.InvalidURL:
        return None


class HttpService:
    """A service with JSON over HTTP. May be shared by threads."""

    def __init__(self, token: str | None, sleep: Callable[[float], object] = time.sleep) -> None:
        """Set up; nothing is sent yet. The token goes to the server of each URL."""
        import httpx

        timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S)
        # A compressed answer could be of any length.
        headers = {"Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        forms = {token, token.replace("/", "\\/")} if token else set()  # JSON may have \/
        self._secrets = [form.encode() for form in forms]
        # The token must not go to another server, so redirects are not followed.
        self._http = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)
        self._sleep, self._rng = sleep, random.Random()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(self, method: str, url: str, content: Any = None) -> Any:
        """Return the JSON of an answer, `None` if it is empty. A busy service is asked again.

        Raises:
            AccessError: If the service refuses access.
            NotFoundError: If there is nothing at this URL.
            StagingError: If the service fails, is busy for long, or its answer is no JSON.
        """
        waited_s = 0.0
        for number in range(1000):
            answer = self._send(method, url, content)
            if answer.status not in BUSY:
                break
            wait_s = pause_s(number, self._rng, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            with suppress(ValueError, OverflowError):
                wait_s = max(wait_s, min(float(answer.retry_after), MOST_BUSY_S))
            waited_s += wait_s
            if waited_s > MOST_BUSY_S:
                break
            self._sleep(wait_s)
        who, text = f"{method} {url}", self._without_token(bytes(answer.content))
        if answer.status >= 300:
            _raise_for(who, answer.status, text)
        return parse_json(who, text) if text.strip() else None

    def _send(self, method: str, url: str, content: Any) -> _Answer:
        """Return an answer that came in time; a thread waits for it, since a read may take long."""
        answers: SimpleQueue[_Answer] = SimpleQueue()
        threading.Thread(
            target=lambda: answers.put(self._receive(method, url, content)), daemon=True
        ).start()
        try:
            answer = answers.get(timeout=ANSWER_S)
        except Empty:
            raise _too_late(method, url) from None
        if answer.error is not None:
            raise answer.error
        return answer

    def _receive(self, method: str, url: str, content: Any) -> _Answer:
        """Return an answer, or why there is none."""
        import httpx

        answer, end_s = _Answer(), time.monotonic() + ANSWER_S
        try:
            with self._http.stream(method, url, json=content) as reply:
                answer.status = reply.status_code
                answer.retry_after = reply.headers.get("Retry-After", "0")
                for part in reply.iter_raw():
                    answer.content += part
                    if len(answer.content) > MOST_BYTES:
                        raise StagingError(
                            f"{method} {url}: expected at most {size_text(MOST_BYTES)}, found more"
                        )
                    if time.monotonic() > end_s:
                        raise _too_late(method, url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = one_line(f"{type(error).__name__}: {error}")
            answer.error = StagingError(f"{method} {url}: {reason}")
        except Exception as error:  # for the thread that waits
            answer.error = error
        return answer

    def _without_token(self, content: bytes) -> bytes:
        """Return an answer without the token, which a service may echo: errors show answers."""
        for secret in self._secrets:
            content = content.replace(secret, b"***")
        return content


def _too_late(method: str, url: str) -> StagingError:
    limit = seconds_text(ANSWER_S)
    return StagingError(f"{method} {url}: expected a whole answer within {limit}, found none")


def _raise_for(who: str, status: int, answer: bytes) -> None:
    """Raise the error of an answer, with what the service says about it (RFC 7807)."""
    detail = one_line(answer[:200].decode(errors="replace"))
    with suppress(StagingError):
        problem = parse_json(who, answer)
        if isinstance(problem, dict):
            texts = [problem[name] for name in ("title", "detail") if problem.get(name)]
            detail = ": ".join(map(short_text, texts)) or detail
    kind = {401: AccessError, 403: AccessError, 404: NotFoundError}.get(status, StagingError)
    raise kind(
        f"{who}: expected success, found HTTP status {status}" + f": {detail}" * bool(detail)
    )
