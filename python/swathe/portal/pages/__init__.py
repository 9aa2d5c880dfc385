"""The pages that people see."""

from fastapi import APIRouter


def build_router() -> APIRouter:
    """Give what is served below `/`."""
    return APIRouter()
