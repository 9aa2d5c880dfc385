"""Read time and origin of an array from the attributes of its file.

Conventions: CF time coordinates, ACDD (`time_coverage_start`), CoreMetadata of HDF-EOS,
`meta.exposure` of ASDF, `DateTime` of TIFF, times of acquisition of DICOM, and names in use at
archives.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import SwatheError
from swathe.datasets.header_metadata import SEEN_MJD
from swathe.files.places.calendars import DAY, Moment, TimeUnits, nanoseconds_of
from swathe.files.places.coordinates import MOST_ROW_ELEMENTS, values_of
from swathe.files.places.times import time_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile

SPANS = (
    (("time_coverage_start",), ("time_coverage_end",)),
    (("RANGEBEGINNINGDATE", "RANGEBEGINNINGTIME"), ("RANGEENDINGDATE", "RANGEENDINGTIME")),
    (("RangeBeginningDate", "RangeBeginningTime"), ("RangeEndingDate", "RangeEndingTime")),
    (("start_date", "start_time"), ("stop_date", "stop_time")),
    (("start_time",), ("stop_time",)),
    (("start_time",), ("end_time",)),
    (("first_meas_time",), ("last_meas_time",)),
    (("first_measurement_time",), ("last_measurement_time",)),
    (("First_Data_Time",), ("Last_Data_Time",)),
)
"""Names of attributes with the first and last time: a text each, or date and clock."""
PLATFORMS = ("ASSOCIATEDPLATFORMSHORTNAME", "platform", "mission_name", "Satellite", "telescope")
INSTRUMENTS = (
    "ASSOCIATEDINSTRUMENTSHORTNAME",
    "ASSOCIATEDSENSORSHORTNAME",
    "instrument",
    "sensor",
    "altimeter_sensor_name",
    "Sensor_Name",
)
ORBITS = (
    "ORBITNUMBER",
    "STARTORBITNUMBER",
    "StartOrbitNumber",
    "start_orbit_number",
    "orbit_number",
    "OrbitNumber",
    "orbit",
)
ODL = ("CoreMetadata.0", "coremetadata", "coremetadata.0")
INFORMATION = "/HDFEOS INFORMATION"
LONGEST_TEXT = 4_000_000
COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d(?:\.\d+)?)Z?")
ORDINAL = re.compile(r"(\d{4})-(\d{3})(T.*)?")
LAST_YEAR = 9998
"""Year after which a day of the year may be beyond what `date` holds."""
ACQUISITIONS = ("Acquisition", "Content", "Series", "Study")
"""Whose date and time a DICOM file may have, the nearest to the pixels first."""
DICOM_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)?(\d\d(?:\.\d+)?)?)?([+-]\d{4})?")
TIFF_TIME = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")
REAL_CALENDARS = {"standard", "gregorian", "proleptic_gregorian", "julian"}
"""Calendars whose days are days of the Earth; 30 February is none."""
CALENDAR = "proleptic_gregorian"
MJD_0 = nanoseconds_of(Moment.of("1858-11-17"), CALENDAR)


class FileMetadata:
    """Attributes that describe a whole file."""

    def __init__(self, file: ArrayFile) -> None:
        """Read the attributes of the root group, and the texts of HDF-EOS and ASDF."""
        odl = next(filter(None, (_text_of(file, name) for name in ODL)), "")
        self._attributes: dict[str, Any] = {
            **file.attrs,
            **_exposure(file),
            **_acquisition(file),
            **_entries(odl),
        }
        self._span = _span(self._attributes)

    def times(self, array: Array) -> tuple[float | None, float | None]:
        """Return start and end, MJD in UTC; `None` if unknown.

        A time coordinate of several elements comes before attributes of the file, and these before
        one of a single element.
        """
        axis, is_single = _axis_times(array)
        attribute = self._span or _tiff_time(array.attrs)
        if axis is not None and (attribute is None or not is_single):
            return axis
        return attribute or (None, None)

    def origin(self) -> tuple[str | None, str | None]:
        """Return platform and instrument."""
        platform, instrument = (
            next((text for name in names if (text := _word(self._attributes.get(name)))), None)
            for names in (PLATFORMS, INSTRUMENTS)
        )
        return platform, instrument

    def orbit(self) -> int | None:
        """Return the number of the orbit, the first of several; `None` if unknown."""
        values = (np.ravel(self._attributes.get(name, ())) for name in ORBITS)
        texts = (str(each[0]).strip() for each in values if each.size)
        return next((int(text) for text in texts if text.isdecimal() and len(text) < 10), None)


def _word(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _text_of(file: ArrayFile, name: str) -> str:
    """Return a text of HDF-EOS: an attribute, or in HDF5 an array; empty without one."""
    value: Any = file.attrs.get(name, "")
    path = f"{INFORMATION}/{name}"
    if not value and path in file:
        array = file[path]
        if array.dtype.kind == "S" and array.size == 1 and array.dtype.itemsize <= LONGEST_TEXT:
            value = bytes(np.ravel(array.data)[0]).decode("ascii", "replace")
    return value[:LONGEST_TEXT] if isinstance(value, str) else ""


def _entries(odl: str) -> dict[str, str]:
    """Return the values of objects in ODL, the language of CoreMetadata, by name."""
    entries: dict[str, str] = {}
    objects: list[str] = []
    for line in odl.splitlines():
        key, equals, value = (part.strip() for part in line.partition("="))
        if key == "OBJECT" and equals:
            objects.append(value)
        elif key == "END_OBJECT" and objects:
            objects.pop()
        elif key == "VALUE" and objects:
            entries.setdefault(objects[-1], value.strip('"'))
    return entries


def _exposure(file: ArrayFile) -> dict[str, Any]:
    """Return telescope, instrument and times of `meta` in an ASDF file."""
    if file.format != "asdf":
        return {}
    entries: dict[str, Any] = {}
    for path, attributes in file.groups.items():
        if path.endswith("meta/exposure"):
            names = ("start_time", "end_time")
            entries |= {name: attributes[name] for name in names if name in attributes}
        elif path.endswith("meta/instrument"):
            entries["instrument"] = attributes.get("name")
        elif path.endswith("/meta"):
            entries["telescope"] = attributes.get("telescope")
    return entries


def _acquisition(file: ArrayFile) -> dict[str, Any]:
    """Return device, modality and time of a DICOM file."""
    if file.format != "dicom":
        return {}
    attrs = file.attrs
    makers = ("ManufacturerModelName", "StationName", "Manufacturer")
    entries: dict[str, Any] = {
        "platform": next(filter(None, (_word(attrs.get(name)) for name in makers)), None),
        "instrument": attrs.get("Modality"),
    }
    zone = attrs.get("TimezoneOffsetFromUTC", "")
    texts = [attrs.get("AcquisitionDateTime")]
    for name in ACQUISITIONS:
        day, clock = attrs.get(f"{name}Date"), attrs.get(f"{name}Time", "")
        texts += [f"{day}{clock}", day]
    for text in texts:
        if match := DICOM_TIME.fullmatch(str(text).strip()):
            *day, hour, minute, second, own_zone = match.groups()
            clock = f"T{hour or '00'}:{minute or '00'}:{second or '00'}{own_zone or zone}"
            time = "-".join(day) + clock
            return entries | {"time_coverage_start": time, "time_coverage_end": time}
    return entries


def _span(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    for names in SPANS:
        parts = [[attributes.get(name) for name in of_end] for of_end in names]
        if any(part is None for of_end in parts for part in of_end):
            continue
        start, end = (_mjd(*of_end) for of_end in parts)
        if start is not None and end is not None and start <= end:
            return start, end
    return None


def _mjd(value: Any, clock: Any = "") -> float | None:
    """Return the MJD of a text or number; `None` if it is no time."""
    if isinstance(value, int | float | np.integer | np.floating) and not clock:
        return _within_range(value)
    if not isinstance(value, str) or not isinstance(clock, str):
        return None
    text = f"{value.strip()}T{clock.strip()}" if clock else value.strip()
    if match := COMPACT.fullmatch(text):
        text = "{}-{}-{}T{}:{}:{}".format(*match.groups())
    elif match := ORDINAL.fullmatch(text):
        year, day, rest = match.groups()
        if not 1 <= int(year) <= LAST_YEAR or not 1 <= int(day) <= 366:
            return None
        text = f"{date(int(year), 1, 1) + timedelta(int(day) - 1)}{rest or ''}"
    try:
        return _within_range((nanoseconds_of(Moment.of(text), CALENDAR) - MJD_0) / DAY)
    except ValueError:
        return None


def _within_range(mjd: Any) -> float | None:
    return float(mjd) if SEEN_MJD[0] < mjd < SEEN_MJD[1] else None


def _tiff_time(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    match = TIFF_TIME.fullmatch(str(attributes.get("DateTime", "")).strip())
    mjd = None if match is None else _mjd("{}-{}-{}T{}".format(*match.groups()))
    return None if mjd is None else (mjd, mjd)


def _axis_times(array: Array) -> tuple[tuple[float, float] | None, bool]:
    """Return first and last time of the time coordinate, and whether it has one element."""
    try:
        coordinate = time_of(array)
        if coordinate.size > MOST_ROW_ELEMENTS:
            return None, False
        values = values_of(coordinate)
        attrs = coordinate.attrs
        calendar = str(attrs.get("calendar", "standard")).strip().lower()
        if calendar not in REAL_CALENDARS:
            return None, False
        units = TimeUnits.of(str(attrs.get("units", "")), calendar)
    except (SwatheError, ValueError):
        # A coordinate that is absent or cannot be read says nothing about the time.
        return None, False
    values = values[np.isfinite(values)]
    if not values.size:
        return None, False
    ends = []
    for value in (values.min(), values.max()):
        nanoseconds = float(units.reference - MJD_0) + float(value) * units.nanoseconds
        ends.append(_within_range(nanoseconds / DAY))
    if ends[0] is None or ends[1] is None:
        return None, False
    return (ends[0], ends[1]), values.size == 1
