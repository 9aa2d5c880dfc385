"""HTTP statuses of errors: a user's mistake is 4xx, an error of the portal 5xx."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from swathe.core import errors
from swathe.core.format import harmless_text
from swathe.core.value_errors import fault_text
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi.exceptions import RequestValidationError

STATUS: tuple[tuple[type[errors.SwatheError], int], ...] = (
    (errors.TokenError, 401),
    (errors.AccessError, 403),
    (errors.NoSuchStoreError, 404),
    (errors.NoSuchDatasetError, 404),
    (errors.NotFoundError, 404),
    (errors.NoSuchJobError, 404),
    (errors.NoSuchResultError, 404),
    (errors.NoSuchRunError, 404),
    (errors.NoSuchAlgorithmError, 404),
    (errors.NoSuchArrayError, 404),
    (errors.NoSuchSubscriptionError, 404),
    (errors.CursorError, 400),
    (errors.LimitError, 429),
    (errors.AlgorithmExistsError, 409),
    (errors.AlgorithmError, 422),
    (errors.SubscriptionError, 422),
    (errors.JobError, 422),
    (errors.OptionError, 422),
    (errors.TargetsError, 422),
    (errors.RegionError, 422),
    (errors.NoSuchHduError, 422),
    (errors.FormatError, 422),
    (errors.DatasetError, 422),
    (errors.StoreSettingsError, 422),
    (errors.SettingsError, 422),  # of a run: those of the portal are checked before it starts
    (errors.ProgramError, 422),
    (errors.SandboxUnavailableError, 503),
    (errors.SandboxBusyError, 503),
    (errors.CatalogError, 503),
    (errors.WebhookError, 422),  # of a URL; those of deliveries are no answers
    (errors.SourceError, 502),
    (errors.OutputError, 507),
    (errors.SwatheError, 500),
)


OWN_PATH = re.compile(r"(?<![\w:/.-])(?:sqlite:///)?/(?:[^\s/:'\"]+/)*([^\s/:'\"]+)")
"""An absolute path; the group is its last part."""
log = logging.getLogger("swathe.portal")


def status_of(error: errors.SwatheError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, errors.LimitError) and error.retry_after_s is None:
        return 413  # a fixed limit: a later try fails too
    return next(status for kind, status in STATUS if isinstance(error, kind))


def text_of(error: errors.SwatheError) -> str:
    """Return the message of an error for users, with files named by their stores.

    Errors of the database and of results contain paths of this machine. Users see only the last
    part of each path; the log has the whole message.
    """
    text = with_store_names(str(error))
    if isinstance(error, errors.CatalogError | errors.OutputError):
        log.warning("%s", harmless_text(text))
        return OWN_PATH.sub(r"\1", text)
    return text


def request_fault(error: RequestValidationError) -> str:
    """Return what is wrong with a request that does not fit its description."""
    first = error.errors()[0]
    place = ".".join(str(part)[:50] for part in first["loc"][:6])
    return f"{place}: {fault_text(first)}"


def headers_of(error: errors.SwatheError) -> Mapping[str, str]:
    """Return the response headers of an error."""
    if isinstance(error, errors.TokenError):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, errors.CatalogError):
        return {"Retry-After": "5"}
    if isinstance(error, errors.LimitError) and error.retry_after_s is not None:
        return {"Retry-After": str(error.retry_after_s)}
    return {}
