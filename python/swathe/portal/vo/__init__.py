"""The interfaces of the Virtual Observatory, all below one base."""

from fastapi import APIRouter


def build_router() -> APIRouter:
    """Give what is served below `/vo`."""
    return APIRouter(prefix="/vo")
