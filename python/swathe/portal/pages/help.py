"""Help within the portal: examples with its own address, and the REST interface, both offline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import NotFoundError
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.archive import archive_counts_of
from swathe.portal.pages.render import PageRoute, page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

router = APIRouter(route_class=PageRoute)
USUAL_PLACE = (150.1, 2.2)
"""Position of the examples of an archive without images on the sky."""
METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 3


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call.

    Attributes:
        name: its name.
        place: where it is: in the path, the query or a header.
        kind: its type, in words.
        is_required: whether it must be there.
        about: what it is.
    """

    name: str
    place: str
    kind: str
    is_required: bool
    about: str


@dataclass(frozen=True)
class Call:
    """A call of the REST interface.

    Attributes:
        method: of HTTP.
        path: below the portal's address.
        summary: what it does.
        parameters: of the path and the query.
        body: what is sent.
        answer: what is returned.
    """

    method: str
    path: str
    summary: str
    parameters: list[Parameter]
    body: str
    answer: str


@router.api_route("/help", methods=["GET", "HEAD"])
def help_page(request: Request, _user: Reader) -> Response:
    """Show how to use this portal from pages, Python, the shell and tools of astronomers."""
    ra, dec, dataset = _example(request)
    return page(
        request,
        "help.html",
        url=portal_of(request).url(request),
        ra=f"{ra:.4f}",
        dec=f"{dec:.4f}",
        dataset=dataset,
        parts=sorted(_calls(request)),
    )


@router.api_route("/help/api", methods=["GET", "HEAD"])
def api_help(
    request: Request,
    _user: Reader,
    part: Annotated[str, Query(max_length=50)] = "jobs",
) -> Response:
    """Show the calls of a part of the REST interface."""
    calls = _calls(request)
    if part not in calls:
        raise NotFoundError(f"part: expected one of {', '.join(sorted(calls))}, found {part!r}")
    return page(request, "help_api.html", part=part, parts=sorted(calls), calls=calls[part])


def _example(request: Request) -> tuple[float, float, str]:
    """Return a position that an image shows, and its dataset; of an empty archive, usual ones."""
    catalog = portal_of(request).catalog
    for each in archive_counts_of(request).all():
        if each.summary.images_on_sky:
            for granule in catalog.granules(each.dataset.name, 0, 50):
                if granule.footprint is not None:
                    return granule.footprint.s_ra, granule.footprint.s_dec, each.dataset.name
    return *USUAL_PLACE, "DATASET"


def _calls(request: Request) -> dict[str, list[Call]]:
    """Return the calls of the REST interface by part, made once."""
    state = request.app.state
    if not hasattr(state, "help_calls"):
        calls: dict[str, list[Call]] = {}
        for part, call in _read_calls(cast("FastAPI", state.api).openapi()):
            calls.setdefault(part, []).append(call)
        state.help_calls = calls
    return cast("dict[str, list[Call]]", state.help_calls)


def _read_calls(schema: Mapping[str, Any]) -> Iterator[tuple[str, Call]]:
    """Yield the calls of an OpenAPI document, with their parts."""
    for path, methods in schema["paths"].items():
        for method in METHODS:
            call = methods.get(method)
            if call is None:
                continue
            parameters = [
                Parameter(
                    each["name"],
                    each["in"],
                    kind_of(schema, each.get("schema", {})),
                    each.get("required", False),
                    each.get("description", ""),
                )
                for each in call.get("parameters", ())
            ]
            yield (
                call["tags"][0],
                Call(
                    method.upper(),
                    f"/api{path}",
                    call.get("description", call["summary"]),
                    parameters,
                    _content(schema, call.get("requestBody", {})),
                    _answer(schema, call["responses"]),
                ),
            )


def _answer(schema: Mapping[str, Any], responses: Mapping[str, Any]) -> str:
    code = min(responses)
    content = _content(schema, responses[code])
    return f"{code}: {content}" if content else code


def _content(schema: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return the media types of a body, with what JSON has."""
    texts = []
    for media_type, each in body.get("content", {}).items():
        kind = kind_of(schema, each.get("schema", {}))
        texts.append(f"{media_type}, {kind}" if media_type == "application/json" else media_type)
    return "; ".join(texts)


def kind_of(schema: Mapping[str, Any], kind: Mapping[str, Any], depth: int = 0) -> str:
    """Return a type of OpenAPI in words: `number`, `list of text`, `{rows, next}`."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return kind_of(schema, schema["components"]["schemas"][name], depth)
    if "enum" in kind:
        return " or ".join(str(each) for each in kind["enum"])
    if "const" in kind:
        return str(kind["const"])
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in kind:
            some = [kind_of(schema, each, depth) for each in kind[choice]]
            return " or ".join(dict.fromkeys(each for each in some if each != "null"))
    match kind.get("type"):
        case "array":
            return f"list of {kind_of(schema, kind.get('items', {}), depth + 1)}"
        case "object":
            names = kind.get("properties", {})
            if not names or depth >= DEEPEST:
                return "object"
            mandatory = set(kind.get("required", ()))
            return "{" + ", ".join(f"{n}" if n in mandatory else f"{n}?" for n in names) + "}"
        case "string":
            return str(kind.get("format", "text"))
        case None:
            return "anything"
        case other:
            return str(other)
