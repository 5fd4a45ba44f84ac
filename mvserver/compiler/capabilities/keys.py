"""What makes equal group keys the same value: the zero and the NaN of floating point have one form each."""

from __future__ import annotations

from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.expressions import Expression


def normalized_key(node: Expression) -> Expression:
    """Floating-point keys with one zero and one NaN; other expressions unchanged."""
    return call_operator("normalized key", (node,)) if node.type.is_approximate else node
