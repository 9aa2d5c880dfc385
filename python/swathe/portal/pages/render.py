"""Rendering of pages from templates, and error pages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from swathe import _swathe
from swathe.core.errors import SwatheError, TokenError
from swathe.core.format import harmless_text
from swathe.core.value_errors import fault_text
from swathe.portal.access import cookie_of, token_of
from swathe.portal.context import portal_of
from swathe.portal.http.request_ids import request_id
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages import assets
from swathe.portal.pages.words import FILTERS
from swathe.trace import recorded_file

log = logging.getLogger("swathe.portal")
# Only content served by this portal; no inline script and no inline style.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY.format(styles=""),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache, private",
}
# Bokeh needs inline styles.
WITH_PLOTS = {"Content-Security-Policy": POLICY.format(styles=" 'unsafe-inline'")}
SIGN_IN = "/sign-in"

environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters.update(FILTERS)
environment.filters["segment"] = lambda text: quote(text, safe="")
environment.globals.update(asset=assets.url, version=_swathe.__version__)


def page(
    request: Request,
    template: str,
    *,
    code: int = 200,
    plots: bool = False,
    **context: Any,
) -> HTMLResponse:
    """Return a page rendered from a template; `plots` for pages with Bokeh plots."""
    portal = portal_of(request)
    # The access check of this request has just cached the user.
    user = portal.access.cached_user(token_of(request))
    sees_all = portal.sees_all(user)

    def here(**changes: Any) -> str:
        """Return the URL of this page with changed parameters; `None` removes one."""
        parameters = {**request.query_params, **changes}
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return f"{request.url.path}?{query}" if query else request.url.path

    html = environment.get_template(template).render(
        request=request,
        path=request.url.path,
        title=portal.config.vo.title,
        user=user,
        sees_predictions=sees_all,
        has_runs=user is not None and portal.has_runs,
        is_admin=user is not None and user.may("admin"),
        traced=sees_all and recorded_file() is not None,
        tokens=portal.access.needs_token,
        signed_in=cookie_of(request) in request.cookies,
        here=here,
        **context,
    )
    return HTMLResponse(html, code, {**HEADERS, **(WITH_PLOTS if plots else {})})


def error_page(request: Request, status: int, message: str) -> HTMLResponse:
    """Return an error page."""
    return page(
        request,
        "error.html",
        code=status,
        status=status,
        phrase=HTTPStatus(status).phrase,
        message=message,
        request_id=request_id() if status >= 500 else "",
    )


class PageRoute(APIRoute):
    """A route with errors as pages, and a redirect to the sign-in page if a token is needed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except TokenError as error:
                return _sign_in_first(request, error)
            except SwatheError as error:
                response = error_page(request, status_of(error), text_of(error))
                response.headers.update(headers_of(error))
                return response
            except HTTPException as error:
                return error_page(request, error.status_code, error.detail)
            except RequestValidationError as error:
                return error_page(request, 422, _error_text(error))
            except Exception:
                log.exception("%s %s", request.method, harmless_text(request.url.path))
                return error_page(request, 500, "internal error of the portal; see its log")

        return answer


def _sign_in_first(request: Request, error: TokenError) -> Response:
    if request.method not in ("GET", "HEAD"):
        return error_page(request, 401, str(error))
    requested_path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': requested_path})}", 303, HEADERS)


def _error_text(error: RequestValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'][1:])}: {fault_text(first)}"
