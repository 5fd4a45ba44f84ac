"""The one table of what a continuous query may compute."""

from __future__ import annotations

from mvserver.compiler.capabilities.model import Capability, Overload
from mvserver.compiler.capabilities.registry import all_capabilities, find, overload

__all__ = ["Capability", "Overload", "all_capabilities", "find", "overload"]
