"""HTTP statuses of errors: a user's mistake is 4xx, an error of the portal 5xx."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from swathe.core import errors
from swathe.core.format import harmless_text
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS: tuple[tuple[type[errors.SwatheError], int], ...] = (
    (errors.TokenError, 401),
    (errors.AccessError, 403),
    (errors.NoSuchStoreError, 404),
    (errors.NoSuchDatasetError, 404),
    (errors.NotFoundError, 404),
    (errors.NoSuchJobError, 404),
    (errors.NoSuchResultError, 404),
    (errors.LimitError, 429),
    (errors.JobError, 422),
    (errors.OptionError, 422),
    (errors.TargetsError, 422),
    (errors.RegionError, 422),
    (errors.NoSuchHduError, 422),
    (errors.FormatError, 422),
    (errors.DatasetError, 422),
    (errors.StoreSettingsError, 422),
    (errors.CatalogError, 503),
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


def headers_of(error: errors.SwatheError) -> Mapping[str, str]:
    """Return the response headers of an error."""
    if isinstance(error, errors.TokenError):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, errors.CatalogError):
        return {"Retry-After": "5"}
    if isinstance(error, errors.LimitError) and error.retry_after_s is not None:
        return {"Retry-After": str(error.retry_after_s)}
    return {}
