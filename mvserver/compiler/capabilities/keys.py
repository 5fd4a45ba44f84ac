"""Equal group keys are the same value: the zero and the NaN of floating point have one form each."""

from __future__ import annotations

from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.expressions import Call, Expression

_NAME = "normalized key"


def normalized_key(node: Expression) -> Expression:
    """Floating-point keys with one zero and one NaN; other expressions, and what is normalized, unchanged."""
    done = isinstance(node, Call) and node.function.startswith(_NAME)
    return call_operator(_NAME, (node,)) if node.type.is_approximate and not done else node
