"""Rows of any content, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from swathe.core.row_record import STATUSES, RowRecord

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WHOLE = st.integers(-(1 << 53), 1 << 53)
DEGREES = st.floats(-360, 360)
RECORDS = st.builds(
    RowRecord,
    number=st.integers(0, 1 << 31),
    position=st.just(0),
    result=st.none() | st.integers(0, 1 << 31),
    id=TEXT,
    name=TEXT,
    source=TEXT,
    hdu=st.none() | TEXT,
    box=st.none() | st.tuples(WHOLE, WHOLE, WHOLE, WHOLE),
    planes=st.none() | st.tuples(WHOLE, WHOLE) | st.tuples(WHOLE, WHOLE, WHOLE, WHOLE),
    sky=st.none() | st.tuples(DEGREES, DEGREES, DEGREES),
    status=st.sampled_from(STATUSES),
    reason=TEXT,
    bytes=st.integers(0, 1 << 62),
    version=TEXT,
    sha256=st.just("") | st.binary(min_size=32, max_size=32).filter(any).map(bytes.hex),
)
