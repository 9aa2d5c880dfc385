"""Conditions as text: the same as another program parses them, and nothing takes long."""

from __future__ import annotations

import cql2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import DatasetError
from swathe.datasets.cql2_text import parse_cql2_text

VALUES = st.sampled_from(
    ["'a'", "'it''s'", "1", "-2.5", "1e3", "TIMESTAMP('2005-05-01T00:00:00Z')"]
)
NAMES = st.sampled_from(["platform", "eo:cloud_cover", '"swathe:bytes"', "a.b"])
SIGNS = st.sampled_from([" = ", " <> ", "<", "<=", " > ", " >= "])
PREDICATES = st.one_of(
    st.tuples(NAMES, SIGNS, VALUES).map("".join),
    NAMES.map("{} IS NULL".format),
    NAMES.map("{} IS NOT NULL".format),
    NAMES.map("{} LIKE 'a%'".format),
    NAMES.map("{} not in ('a', 'b')".format),
    NAMES.map("{} IN (1)".format),
    NAMES.map("{} BETWEEN 1 AND 2".format),
)
CONDITIONS = st.recursive(
    PREDICATES,
    lambda inner: st.one_of(
        inner.map("NOT ({})".format),
        st.tuples(inner, st.sampled_from([" AND ", " or "]), inner).map("".join),
        inner.map("({})".format),
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_conditions_are_those_of_another_parser(text: str) -> None:
    expected = cql2.parse_text(text)
    assert cql2.Expr(parse_cql2_text(text)).to_text() == expected.to_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a property or a literal, found 'the end'"),
        ("platform", "a comparison, LIKE, BETWEEN, IN or IS NULL"),
        ("platform = ", "a property or a literal"),
        ("platform = 'a", "a property, a literal or an operator"),
        ("platform = 'a' platform", "the end, found 'platform'"),
        ("platform IN ()", "a property or a literal"),
        ("platform IN ('a' 'b')", "found 'b'"),
        ("(platform = 'a'", r"'\)'"),
        ("platform = 'a' AND", "a property or a literal"),
        ("a; b", "a property, a literal or an operator, found '; b'"),
        ("(" * 1000, "at most 20 levels"),
        ("NOT " * 500 + "a = 1", "at most 20 levels"),
    ],
)
def test_what_is_no_condition_is_told(text: str, told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        parse_cql2_text(text)
