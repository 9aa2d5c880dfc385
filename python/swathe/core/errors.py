"""What Swathe raises.

::

    SwatheError                 everything below; also faults of Swathe itself
    |- NotFoundError            no such object                       (FileNotFoundError)
    |- AccessError              it may not be read                   (PermissionError)
    |  `- TokenError            a portal wants a token, or another one
    |- SourceError              reading it failed                    (OSError)
    |  `- ChangedError          it is no longer what was opened
    |- FormatError              it is damaged or no FITS file        (ValueError)
    |- NoSuchHduError           it has no such HDU                   (KeyError)
    |  `- NotAnImageError       the HDU is in order, and holds no image
    |- RegionError              the region makes no sense            (ValueError)
    |  |- NoOverlapError        it lies outside the image
    |  |- PartialOverlapError   it lies partly outside, mode="strict"
    |  `- PixelIndexError       an index of a section is out of range  (IndexError)
    |- TargetsError             the list of targets cannot be read   (ValueError)
    |- OutputError              a result cannot be written           (OSError)
    |  `- OutputExistsError     there is a file of this name, and overwrite=False  (FileExistsError)
    |- NoSuchStoreError         no store has this name               (KeyError)
    |- StoreSettingsError       a store's settings make no sense     (ValueError)
    |- NoSuchDatasetError       no dataset has this name             (KeyError)
    |- DatasetError             what is asked of datasets makes no sense  (ValueError)
    |- SettingsError            the settings of a portal make no sense    (ValueError)
    |- JobError                 what is asked of a job makes no sense     (ValueError)
    |- NoSuchJobError           no job has this id                 (KeyError)
    |- NoSuchResultError        the job has no such result         (KeyError)
    |- TraceError               events cannot be recorded as asked       (ValueError)
    |- LimitError               a user asks for more than is allowed
    `- CatalogError             the catalogue cannot be used         (OSError)
       `- CatalogSetupError     nor will it, before it is set up otherwise
"""


class SwatheError(Exception):
    """Base of all errors."""

    def __str__(self) -> str:
        """Give the message, also where a built-in base would show it otherwise."""
        return str(self.args[0]) if self.args else ""


class NotFoundError(SwatheError, FileNotFoundError):
    """There is no such object."""


class AccessError(SwatheError, PermissionError):
    """The object may not be read."""


class TokenError(AccessError):
    """A portal knows no user by the token it was given, or was given none."""


class SourceError(SwatheError, OSError):
    """Reading the object failed; trying again may help."""


class ChangedError(SourceError):
    """The object changed since it was opened; opening it again gives the new one."""


class FormatError(SwatheError, ValueError):
    """The object is damaged, or no FITS file, or of a kind that is not supported."""


class NoSuchHduError(SwatheError, KeyError):
    """The object is in order, and has no such HDU."""


class NotAnImageError(NoSuchHduError):
    """The HDU is in order, and holds a table or nothing, not an image."""


class RegionError(SwatheError, ValueError):
    """The region makes no sense, or not for this image."""


class NoOverlapError(RegionError):
    """The region has no pixel in the image."""


class PartialOverlapError(RegionError):
    """The region is not wholly in the image, and `mode="strict"` asks for that."""


class PixelIndexError(RegionError, IndexError):
    """An index is beyond the end of an axis."""


class TargetsError(SwatheError, ValueError):
    """The list of targets cannot be read or lacks columns."""


class OutputError(SwatheError, OSError):
    """A result cannot be written."""


class OutputExistsError(OutputError, FileExistsError):
    """There is a file of this name already, and nobody asked to replace it."""


class NoSuchStoreError(SwatheError, KeyError):
    """The catalogue has no store of this name."""


class StoreSettingsError(SwatheError, ValueError):
    """The settings of a store make no sense, or hold what looks like a credential."""


class NoSuchDatasetError(SwatheError, KeyError):
    """The catalogue has no dataset of this name."""


class DatasetError(SwatheError, ValueError):
    """What is asked of a dataset, or of all in a search, makes no sense."""


class SettingsError(SwatheError, ValueError):
    """The settings of a portal make no sense."""


class JobError(SwatheError, ValueError):
    """An option of a job makes no sense, or the job is in no state for what is asked."""


class NoSuchJobError(SwatheError, KeyError):
    """There is no job of this id; it may have expired."""


class NoSuchResultError(SwatheError, KeyError):
    """The job has no result of this name, or not yet."""


class TraceError(SwatheError, ValueError):
    """Events go to no such place, or are recorded already."""


class LimitError(SwatheError):
    """A user asks for more than is allowed.

    Attributes:
        retry_after_s: when to try again; `None` where that cannot help.
    """

    def __init__(self, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CatalogError(SwatheError, OSError):
    """The catalogue cannot be opened, read or written."""


class CatalogSetupError(CatalogError):
    """Its database is read-only, refuses the user, or lacks tables: to try again does not help."""
