"""Models of the REST interface that are made from records."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from swathe.catalog import Outcome
from swathe.portal.api.models import MODELS
from swathe.workers.pool import HandOver, Member, PoolStatus


def test_fields_have_the_texts_and_bounds_of_their_record() -> None:
    schema = MODELS["HandOver"].model_json_schema()
    properties = schema["properties"]
    assert schema["description"] == "Hand-over of a leaving worker's cache."
    assert properties["limit_s"]["description"] == "longest duration allowed, seconds."
    assert "gave nothing because" in properties["state"]["description"]
    assert "broken off" in properties["state"]["enum"]


def test_a_response_lacks_what_is_hidden_and_always_has_the_rest() -> None:
    schema = MODELS["HandOver"].model_json_schema()
    assert "ended_at" not in schema["properties"]
    assert set(schema["required"]) == set(schema["properties"]) >= {"refused", "summary"}


def test_records_within_records_become_models() -> None:
    left = HandOver("w0", "gave nothing", ended_at=1.0)
    status = PoolStatus("dask", "", "", 0, [Member("w0", "host", 1, 0)], [], hand_overs=[left])
    content = MODELS["PoolStatus"].model_validate({**vars(status), "truncated": False}).model_dump()
    assert content["workers"][0]["threads"] == 1
    assert content["hand_overs"][0]["summary"] == left.summary
    assert "ended_at" not in content["hand_overs"][0]


def test_times_without_a_zone_are_refused() -> None:
    noon = datetime(2026, 3, 20, 12, tzinfo=UTC)
    outcome = Outcome(noon, "", "", 0, "", 1.0, 1.0, 1.0, 1.0, 0, 0, 0, 0)
    assert MODELS["Outcome"].model_validate(outcome).at == noon
    with pytest.raises(ValidationError, match="timezone"):
        MODELS["Outcome"].model_validate({**vars(outcome), "at": noon.replace(tzinfo=None)})
