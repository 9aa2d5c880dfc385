"""Errors as OGC's standards have them: problem documents (RFC 9457) with their exact types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core import errors
from swathe.core.errors import SwatheError
from swathe.portal.http.problem_documents import OTHER, problem_response
from swathe.portal.http_errors import headers_of, status_of, text_of

if TYPE_CHECKING:
    from starlette.responses import JSONResponse

_TYPES = "http://www.opengis.net/def/exceptions"
NO_SUCH_PROCESS = f"{_TYPES}/ogcapi-processes-1/1.0/no-such-process"
NO_SUCH_JOB = f"{_TYPES}/ogcapi-processes-1/1.0/no-such-job"
RESULT_NOT_READY = f"{_TYPES}/ogcapi-processes-1/1.0/result-not-ready"
DUPLICATED_PROCESS = f"{_TYPES}/ogcapi-processes-2/1.0/duplicated-process"
IMMUTABLE_PROCESS = f"{_TYPES}/ogcapi-processes-2/1.0/immutable-process"
UNSUPPORTED_MEDIA_TYPE = f"{_TYPES}/ogcapi-processes-2/1.0/unsupported-media-type"


class ProblemError(SwatheError):
    """An error of an OGC interface: HTTP status, type and text."""

    def __init__(self, status: int, text: str, kind: str = OTHER) -> None:
        """Set the HTTP status, the text for the user, and the URI of the type."""
        super().__init__(text)
        self.status, self.kind = status, kind


def no_such_process(identifier: str) -> ProblemError:
    """Return the error for a process that does not exist."""
    return ProblemError(404, f"there is no process {identifier[:100]!r}", NO_SUCH_PROCESS)


def problem_answer(error: SwatheError) -> JSONResponse:
    """Return the response to a request that failed."""
    if isinstance(error, ProblemError):
        return problem_response(error.status, str(error), error.kind)
    kind = OTHER
    status = status_of(error)
    match error:
        case errors.NoSuchJobError():
            kind = NO_SUCH_JOB
        case errors.NoSuchAlgorithmError():  # it was removed meanwhile
            kind = NO_SUCH_PROCESS
    # A value that is wrong is 400 in OGC's standards, not 422.
    status = 400 if status == 422 else status
    return problem_response(status, text_of(error), kind, headers_of(error))
