"""Errors as the interfaces of the Virtual Observatory tell them: a word of theirs, then why.

The words are those of DALI and SODA: Error, AuthenticationError, AuthorizationError,
ServiceUnavailable, UsageError, MultiValuedParamNotSupported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from starlette.responses import PlainTextResponse

from swathe.core import errors
from swathe.core.errors import SwatheError
from swathe.portal.http_errors import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

Label = Literal[
    "Error",
    "AuthenticationError",
    "AuthorizationError",
    "ServiceUnavailable",
    "UsageError",
    "MultiValuedParamNotSupported",
]
RETRY_S = 5
LONGEST = 2000
"""Characters of a message."""

TOLD: tuple[tuple[type[SwatheError], Label, int], ...] = (
    (errors.TokenError, "AuthenticationError", 401),
    (errors.NotFoundError, "UsageError", 404),
    (errors.NoSuchJobError, "UsageError", 404),
    (errors.NoSuchResultError, "UsageError", 404),
    (errors.NoSuchHduError, "UsageError", 400),
    (errors.RegionError, "UsageError", 400),
    (errors.FormatError, "Error", 422),
    (errors.TargetsError, "UsageError", 400),
    (errors.DatasetError, "UsageError", 400),
    (errors.JobError, "UsageError", 400),
    (errors.NoSuchDatasetError, "UsageError", 400),
    (errors.AccessError, "AuthorizationError", 403),
    (errors.CatalogError, "ServiceUnavailable", 503),
    (errors.SourceError, "ServiceUnavailable", 503),
)
"""What is told of our own errors; all others are faults of this service."""
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": str(RETRY_S)}}


class VoError(SwatheError):
    """What a client is told: a word that it knows, and why."""

    def __init__(self, label: Label, why: str, status: int, headers: Mapping[str, str] = {}):
        """Take the word, the reason, the status of HTTP and headers that go with it."""
        super().__init__(" ".join(why.split())[:LONGEST])
        self.label: Label = label
        self.status = status
        self.headers = headers

    @property
    def line(self) -> str:
        """What a client reads."""
        return f"{self.label}: {self}"

    def response(self) -> Response:
        """Give the answer of a service whose results are no tables."""
        return PlainTextResponse(f"{self.line}\n", self.status, dict(self.headers))


def usage(why: str, status: int = 400) -> VoError:
    """Give the error for what makes no sense."""
    return VoError("UsageError", why, status)


def busy(why: str) -> VoError:
    """Give the error for what may work later."""
    return VoError("ServiceUnavailable", why, 503, HEADERS[503])


def to_vo_error(error: SwatheError) -> VoError:
    """Give what is told of an error."""
    if isinstance(error, VoError):
        return error
    if isinstance(error, errors.LimitError):
        wait = error.retry_after_s
        if wait is None:
            return usage(text_of(error), 413)
        return VoError("ServiceUnavailable", text_of(error), 429, {"Retry-After": str(wait)})
    for kind, label, status in TOLD:
        if isinstance(error, kind):
            return VoError(label, text_of(error), status, HEADERS.get(status, {}))
    return VoError("Error", text_of(error), 500)
