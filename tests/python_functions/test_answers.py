"""What a function's answer is taken for: numbers at the edges of their types."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import pytest

from mvserver.python_functions.answers import AnswerError, checker


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 18), (38, 38), (28, 0)])
@pytest.mark.parametrize("sign", [0, 1])
def test_decimals_at_the_end_of_their_range(precision: int, scale: int, sign: int) -> None:
    result: dict[str, Any] = {"kind": "DECIMAL", "precision": precision, "scale": scale}
    check = checker(result, 100)
    most = Decimal((sign, (9,) * precision, -scale))
    assert str(check(most)) == str(most)
    with pytest.raises(AnswerError):
        check(Context(prec=40).add(most, Decimal((sign, (1,), -scale))))


def test_floats_at_the_end_of_their_range() -> None:
    check = checker({"kind": "FLOAT"}, 100)
    assert check(3.4028235e38) == 3.4028235e38  # the greatest one, by its shortest text
    with pytest.raises(AnswerError):
        check(3.4028236e38)
