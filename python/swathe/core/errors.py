"""Exceptions that Swathe raises.

::

    SwatheError                 base of all; by itself an internal error of Swathe
    |- NotFoundError            the object does not exist             (FileNotFoundError)
    |- AccessError              the object may not be read            (PermissionError)
    |  `- TokenError            a portal's token is missing or invalid
    |- SourceError              reading the object failed             (OSError)
    |  `- ChangedError          the object has changed since it was opened
    |- FormatError              the object is damaged or not FITS     (ValueError)
    |- NoSuchHduError           the object has no such HDU            (KeyError)
    |  `- NotAnImageError       the HDU is valid but holds no image
    |- NoSuchArrayError         the object has no such array          (KeyError)
    |- RegionError              the region is invalid                 (ValueError)
    |  |- NoOverlapError        the region lies outside the image
    |  |- PartialOverlapError   the region lies partly outside, and mode="strict"
    |  `- PixelIndexError       an index of a section is out of range  (IndexError)
    |- OptionError              options do not fit together         (ValueError)
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
    |- TraceError               events cannot be recorded             (ValueError)
    |- LimitError               a limit is exceeded
    `- CatalogError             the catalogue cannot be used          (OSError)
       `- CatalogSetupError     retrying does not help: its set-up must change
"""


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


class CatalogError(SwatheError, OSError):
    """The catalogue cannot be opened, read or written."""


class CatalogSetupError(CatalogError):
    """The database is read-only, refuses the user, or lacks tables; a retry does not help."""
