from __future__ import annotations

from tests.serving.conftest import _prepared, world

__all__ = ["_prepared", "world"]
