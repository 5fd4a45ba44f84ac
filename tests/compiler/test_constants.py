"""Numbers in statements keep all of their digits, whatever their sign."""

from __future__ import annotations

import pytest

from mvserver.compiler.lower_spark import lower
from mvserver.errors import SqlError
from tests.compiler.harness import bound_text

_NINES = "9" * 38


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (_NINES, "DECIMAL(38,0)"),
        (f"-{_NINES}", "DECIMAL(38,0)"),
        (f"-0.{_NINES}", "DECIMAL(38,38)"),
        ("-1234567890123456789012345678901.5", "DECIMAL(32,1)"),
        ("-0.0", "DECIMAL(1,1)"),
    ],
)
def test_a_number_is_what_is_written(written: str, kind: str) -> None:
    wanted = "0.0" if written == "-0.0" else written
    assert lower(bound_text(written), str) == f"CAST(CAST('{wanted}' AS {kind}) AS STRING)"


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_text_is_the_number_that_it_says(sign: str) -> None:
    for text, kind in ((f"{sign}{_NINES}", "DECIMAL(38,0)"), (f"{sign}0.{_NINES}", "DECIMAL(38,38)")):
        cast = f"CAST('{text}' AS {kind})"
        assert lower(bound_text(cast), str) == f"CAST({cast} AS STRING)"
    with pytest.raises(SqlError) as caught:
        bound_text(f"CAST('{sign}1{'0' * 38}' AS DECIMAL(38, 0))")
    assert caught.value.sqlstate == "22003"
