"""The web pages of a portal. They work without scripts; scripts only add comfort."""

from swathe.portal.pages.render import error_page
from swathe.portal.pages.routes import build_router

__all__ = ["build_router", "error_page"]
