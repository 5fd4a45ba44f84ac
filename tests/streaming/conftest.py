from __future__ import annotations

from tests.services.spark import spark

__all__ = ["spark"]
