"""The web pages of a portal: rendered here, readable without scripts, better with them."""

from swathe.portal.pages.render import error_page
from swathe.portal.pages.routes import build_router

__all__ = ["build_router", "error_page"]
