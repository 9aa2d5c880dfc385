"""Errors in the form of the Virtual Observatory: a standard label, then a message.

The labels are those of DALI and SODA: Error, AuthenticationError, AuthorizationError,
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
"""Maximum number of characters of a message."""

LABELS: tuple[tuple[type[SwatheError], Label, int], ...] = (
    (errors.TokenError, "AuthenticationError", 401),
    (errors.NotFoundError, "UsageError", 404),
    (errors.NoSuchJobError, "UsageError", 404),
    (errors.NoSuchResultError, "UsageError", 404),
    (errors.NoSuchHduError, "UsageError", 400),
    (errors.RegionError, "UsageError", 400),
    (errors.FormatError, "Error", 422),
    (errors.OptionError, "UsageError", 400),
    (errors.QueryError, "UsageError", 400),
    (errors.TargetsError, "UsageError", 400),
    (errors.DatasetError, "UsageError", 400),
    (errors.JobError, "UsageError", 400),
    (errors.NoSuchDatasetError, "UsageError", 400),
    (errors.AccessError, "AuthorizationError", 403),
    (errors.CatalogError, "ServiceUnavailable", 503),
    (errors.SourceError, "ServiceUnavailable", 503),
)
"""Label and status of our own errors; all others are internal errors."""
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": str(RETRY_S)}}


class VoError(SwatheError):
    """An error for a client: a standard label and a message."""

    def __init__(self, label: Label, why: str, status: int, headers: Mapping[str, str] = {}):
        """Set the label, the message, the HTTP status and its headers."""
        super().__init__(" ".join(why.split())[:LONGEST])
        self.label: Label = label
        self.status = status
        self.headers = headers

    @property
    def line(self) -> str:
        """The text that a client reads."""
        return f"{self.label}: {self}"

    def response(self) -> Response:
        """Return the error as a plain text response, for services without tables."""
        return PlainTextResponse(f"{self.line}\n", self.status, dict(self.headers))


def usage(why: str, status: int = 400) -> VoError:
    """Return the error for an invalid request."""
    return VoError("UsageError", why, status)


def busy(why: str) -> VoError:
    """Return the error for a request that may work later."""
    return VoError("ServiceUnavailable", why, 503, HEADERS[503])


def to_vo_error(error: SwatheError) -> VoError:
    """Return an error in the form of the Virtual Observatory."""
    if isinstance(error, VoError):
        return error
    if isinstance(error, errors.LimitError):
        wait = error.retry_after_s
        if wait is None:
            return usage(text_of(error), 413)
        return VoError("ServiceUnavailable", text_of(error), 429, {"Retry-After": str(wait)})
    for kind, label, status in LABELS:
        if isinstance(error, kind):
            return VoError(label, text_of(error), status, HEADERS.get(status, {}))
    return VoError("Error", text_of(error), 500)
