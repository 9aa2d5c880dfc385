"""Exceptions that Swathe raises.

::

    SwatheError                 base of all; by itself an internal error of Swathe
    |- NotFoundError            the object does not exist             (FileNotFoundError)
    |- AccessError              the object may not be read            (PermissionError)
    |  `- TokenError            a portal's token is missing or invalid
    |- SourceError              reading the object failed             (OSError)
    |  |- ChangedError          the object has changed since it was opened
    |  |- OnTapeError           the object is on tape only; stage it first
    |  `- StagingError          the object cannot be staged, or the staging service fails
    |- FormatError              the object is damaged or not FITS     (ValueError)
    |- NoSuchHduError           the object has no such HDU            (KeyError)
    |  `- NotAnImageError       the HDU is valid but holds no image
    |- NoSuchArrayError         the object has no such array          (KeyError)
    |- RegionError              the region is invalid                 (ValueError)
    |  |- NoOverlapError        the region lies outside the image
    |  |- PartialOverlapError   the region lies partly outside, and mode="strict"
    |  `- PixelIndexError       an index of a section is out of range  (IndexError)
    |- OptionError              options do not fit together         (ValueError)
    |- QueryError               a query cannot be answered          (ValueError)
    |- TargetsError             the list of targets cannot be read    (ValueError)
    |- OutputError              a result cannot be written            (OSError)
    |  `- OutputExistsError     the file exists, and overwrite=False  (FileExistsError)
    |- NoSuchStoreError         no store has this name                (KeyError)
    |- StoreSettingsError       a store's settings are invalid        (ValueError)
    |- NoSuchDatasetError       no dataset has this name              (KeyError)
    |- DatasetError             a request about datasets is invalid   (ValueError)
    |- SettingsError            the settings of a portal are invalid  (ValueError)
    |- JobError                 a request about a job is invalid      (ValueError)
    |- NoSuchJobError           no job has this id                    (KeyError)
    |- NoSuchResultError        the job has no such result            (KeyError)
    |- NoSuchRunError           no run or array of a run has this name  (KeyError)
    |- AlgorithmError           an algorithm, or a request about one, is invalid  (ValueError)
    |  `- AlgorithmExistsError  the version exists with another source
    |- NoSuchAlgorithmError     no algorithm, library, environment of this name  (KeyError)
    |- SubscriptionError        a subscription, or a request about one, is invalid  (ValueError)
    |- NoSuchSubscriptionError  no subscription has this id           (KeyError)
    |- CursorError              a cursor is not one that the portal gave  (ValueError)
    |- DeliveryError            an event cannot be delivered         (OSError)
    |  `- WebhookError          ... to a webhook
    |- TraceError               events cannot be recorded             (ValueError)
    |- LimitError               a limit is exceeded
    |- SandboxError             the sandbox of a user's program failed  (OSError)
    |  |- SandboxUnavailableError  this machine cannot confine programs
    |  `- SandboxBusyError         all user ids for programs are in use
    |- ProgramError             a user's program failed               (RuntimeError)
    `- CatalogError             the catalogue cannot be used          (OSError)
       `- CatalogSetupError     retrying does not help: its set-up must change
"""

from __future__ import annotations

from collections.abc import Sequence


class SwatheError(Exception):
    """Base of all exceptions of Swathe."""

    def __str__(self) -> str:
        """Return the message; a built-in base such as KeyError would quote it."""
        return str(self.args[0]) if self.args else ""


class NotFoundError(SwatheError, FileNotFoundError):
    """The object does not exist."""


class AccessError(SwatheError, PermissionError):
    """The object may not be read."""


class TokenError(AccessError):
    """A portal's token is missing or not valid."""


class SourceError(SwatheError, OSError):
    """Reading the object failed; a retry may help."""


class ChangedError(SourceError):
    """The object has changed since it was opened; open it again to read the new version."""


class OnTapeError(SourceError):
    """The object is on tape only: it has to be staged before it can be read."""


class StagingError(SourceError):
    """An object cannot be staged, or the staging service fails or gives a wrong answer."""


class FormatError(SwatheError, ValueError):
    """The object is damaged, not a FITS file, or of an unsupported kind."""


class NoSuchHduError(SwatheError, KeyError):
    """The object is valid but has no such HDU."""


class NotAnImageError(NoSuchHduError):
    """The HDU is valid but holds a table or nothing, not an image."""


class NoSuchArrayError(SwatheError, KeyError):
    """The object is valid but has no such array, or several and none was named."""


class RegionError(SwatheError, ValueError):
    """The region is invalid, by itself or for this image."""


class NoOverlapError(RegionError):
    """The region lies wholly outside the image."""


class PartialOverlapError(RegionError):
    """The region lies partly outside the image, and `mode="strict"` forbids that."""


class PixelIndexError(RegionError, IndexError):
    """An index is out of range of its axis."""


class OptionError(SwatheError, ValueError):
    """An option is invalid, or does not go with another."""


class QueryError(SwatheError, ValueError):
    """A query is invalid for the values that it meets, or takes too long."""


class TargetsError(SwatheError, ValueError):
    """The list of targets cannot be read, or lacks columns."""


class OutputError(SwatheError, OSError):
    """A result cannot be written."""


class OutputExistsError(OutputError, FileExistsError):
    """A file of this name exists, and `overwrite` is false."""


class NoSuchStoreError(SwatheError, KeyError):
    """The catalogue has no store with this name."""


class StoreSettingsError(SwatheError, ValueError):
    """The settings of a store are invalid, or contain what looks like a credential."""


class NoSuchDatasetError(SwatheError, KeyError):
    """The catalogue has no dataset with this name."""


class DatasetError(SwatheError, ValueError):
    """A request about a dataset, or a search of datasets, is invalid."""


class SettingsError(SwatheError, ValueError):
    """The settings of a portal are invalid."""


class JobError(SwatheError, ValueError):
    """An option of a job is invalid, or the state of the job does not allow the request."""


class NoSuchJobError(SwatheError, KeyError):
    """No job has this id; it may have expired."""


class NoSuchResultError(SwatheError, KeyError):
    """The job has no result with this name, or not yet."""


class NoSuchRunError(SwatheError, KeyError):
    """No run has this name, or the run has no such array or iteration."""


class AlgorithmError(SwatheError, ValueError):
    """The definition of an algorithm is invalid, or a value or input that it is given.

    Attributes:
        faults: each error of a definition with several; empty for a single one.
    """

    def __init__(self, message: str, faults: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class AlgorithmExistsError(AlgorithmError):
    """A version of an algorithm or library exists with another source; give it a new version."""


class NoSuchAlgorithmError(SwatheError, KeyError):
    """No algorithm, library or environment has this name, or this version."""


class SubscriptionError(SwatheError, ValueError):
    """A subscription is invalid, or its state does not allow the request."""


class NoSuchSubscriptionError(SwatheError, KeyError):
    """No subscription has this id."""


class CursorError(SwatheError, ValueError):
    """A cursor is not one that the portal gave for this feed."""


class DeliveryError(SwatheError, OSError):
    """An event cannot be delivered: the server does not answer, or refuses it.

    Attributes:
        is_final: whether the receiver wants no more events, or never this one.
    """

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        """Set the message, and whether the receiver wants no more events, or never this one."""
        super().__init__(message)
        self.is_final = is_final


class WebhookError(DeliveryError):
    """An event cannot be sent to a webhook: its address is refused, or the answer is an error."""


class TraceError(SwatheError, ValueError):
    """The destination of events is invalid, or a trace is already being recorded."""


class LimitError(SwatheError):
    """A request exceeds a limit.

    Attributes:
        retry_after_s: seconds to wait before a retry; `None` if a retry cannot help.
    """

    def __init__(self, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SandboxError(SwatheError, OSError):
    """A sandbox failed, which is no fault of the program that ran in it."""


class SandboxUnavailableError(SandboxError):
    """No kind of sandbox holds on this machine, so no program of a user is run."""


class SandboxBusyError(SandboxError):
    """All user ids for programs are in use; later one may be free."""


class ProgramError(SwatheError, RuntimeError):
    """A user's program failed: by its exit code, by a signal, or without its outputs."""


class CatalogError(SwatheError, OSError):
    """The catalogue cannot be opened, read or written."""


class CatalogSetupError(CatalogError):
    """The database is read-only, refuses the user, or lacks tables; a retry does not help."""


def error_class(name: str) -> type[SwatheError] | None:
    """Return the exception of a name, which another process has told; `None` if there is none."""
    value = globals().get(name)
    return value if isinstance(value, type) and issubclass(value, SwatheError) else None
