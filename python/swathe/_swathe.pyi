"""The native half of Swathe. Use the classes of the package, which have defaults and units."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray
from typing_extensions import Buffer

__version__: str

Mode: TypeAlias = Literal["trim", "partial", "strict"]
OutputKind: TypeAlias = Literal["folder", "zip", "tar", "fits"]
HduKey: TypeAlias = int | str | tuple[str, int]

def open(url: str) -> Object: ...
def shown(url: str) -> str:
    """Give a path or URL as anyone may see it: without password, and "..." for what is secret."""

class Object:
    """An open object at one version."""

    @property
    def url(self) -> str: ...
    @property
    def kind(self) -> Literal["plain", "gzip", "bzip2", "compress"]: ...
    @property
    def size(self) -> int:
        """Bytes as stored."""

    @property
    def version(self) -> str: ...
    def notes(self) -> list[str]:
        """What the user should be told, since the last call."""

    def hdus(self) -> list[HduInfo]: ...
    def find(self, hdu: HduKey | None = None) -> int:
        """The number of an HDU; the first image by default."""

    def shape(self, hdu: int) -> list[int]:
        """Shape of an image, NumPy order."""

    def header(self, hdu: int) -> bytes:
        """Header blocks, of a compressed image as if it were not."""

    def wcs_hdus(self, hdu: int) -> bytes:
        """A FITS file of the lookup tables the image's WCS names; empty where it names none."""

    def cut(
        self,
        hdu: int,
        start: Sequence[int],
        stop: Sequence[int],
        mode: Mode,
        fill: float | None = None,
    ) -> Cutout:
        """Cut `[start, stop)`, zero-based, NAXIS1 first, all axes of the image."""

class HduInfo:
    """What is in an HDU; shapes in NumPy order."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def version(self) -> int: ...
    @property
    def kind(self) -> Literal["image", "compressed-image", "table", "empty", "other"]: ...
    @property
    def bitpix(self) -> int | None: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def codec(self) -> str | None: ...
    @property
    def tile_shape(self) -> list[int] | None: ...
    @property
    def data_start(self) -> int: ...
    @property
    def problem(self) -> str | None:
        """Why the image cannot be cut from, if it cannot."""

class Cutout:
    """A complete FITS file of a region, in memory."""

    @property
    def stored(self) -> Buffer:
        """The stored pixels, big-endian."""

    @property
    def bitpix(self) -> int: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def native(self) -> bool:
        """Whether the source was tile-compressed."""

    @property
    def scaling(self) -> tuple[float, float, int | None]:
        """BSCALE, BZERO and BLANK."""

    @property
    def header(self) -> bytes: ...
    @property
    def start(self) -> list[int]: ...
    def fits(self) -> bytes: ...

def start_batch(
    files: list[str],
    file: NDArray[Any],
    hdu: list[HduKey | None],
    hdu_index: NDArray[Any],
    boxes: NDArray[Any],
    names: list[str],
    *,
    output: str,
    kind: OutputKind,
    mode: Mode = "trim",
    fill: float | None = None,
    planes: tuple[int, int] | None = None,
    threads: int = 1,
    append: bool = False,
) -> Batch: ...

class Batch:
    """A running batch."""

    def poll(self, timeout_s: float) -> Rows | None:
        """Rows finished since the last call, perhaps none; `None` when all are told."""

    def cancel(self) -> None: ...
    def finish(self) -> dict[str, Any]:
        """Wait for the threads and close the output; seconds per stage, bytes, notes."""

class Rows:
    """Finished rows, as parallel lists."""

    @property
    def target(self) -> list[int]: ...
    @property
    def status(self) -> list[str]: ...
    @property
    def reason(self) -> list[str]: ...
    @property
    def bytes(self) -> list[int]: ...
    @property
    def version(self) -> list[str]: ...
    @property
    def sha256(self) -> list[str]: ...

def measure(
    url: str,
    requests: list[tuple[int, int]],
    streams: int,
    *,
    fresh: bool = False,
    stores: Any = None,
) -> list[Timing]:
    """Read ranges (offset, length) of an object, in order, `streams` of them in flight.

    With `fresh`, on a new connection each.
    """

def measure_open(url: str, stores: Any = None) -> tuple[float, int]:
    """Learn of an object what is needed to read it; seconds, and its size in bytes."""

class Timing:
    """One request; times in seconds from the call."""

    @property
    def bytes(self) -> int: ...
    @property
    def start_s(self) -> float: ...
    @property
    def first_byte_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def connect_s(self) -> float | None:
        """Time to open the connection, of `fresh` ones."""
