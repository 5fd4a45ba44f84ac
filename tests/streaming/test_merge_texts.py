"""What a view does with a batch is the same text for each batch of its kind, and is made once."""

from __future__ import annotations

from mvserver.streaming.batch.evaluate import rolled_up
from mvserver.streaming.batch.program import build_program
from tests.streaming.states import target


def test_each_kind_of_batch_has_its_merges_made_once() -> None:
    program = build_program([target("SELECT k, sum(i) AS s FROM events GROUP BY k")])
    (view,) = program.views
    plain, with_nulls = (rolled_up(view, null_keys=nulls) for nulls in (False, True))
    assert len(plain.merge_statements) == 1
    assert len(with_nulls.merge_statements) == 2  # one into the table of keys that hold a NULL
    for nulls, merge in ((False, plain), (True, with_nulls)):
        again = rolled_up(view, null_keys=nulls)
        assert again is merge
        assert again.merge_statements is merge.merge_statements


def test_views_of_one_program_have_their_own() -> None:
    program = build_program(
        [target(f"SELECT k, {call}(i) AS m FROM events GROUP BY k", i) for i, call in enumerate(("min", "max"))]
    )
    texts = [rolled_up(view, null_keys=False).merge_statements[0] for view in program.views]
    assert ["least" in text for text in texts] == [True, False]
    assert ["greatest" in text for text in texts] == [False, True]
    assert all(view.target.state.table in text for view, text in zip(program.views, texts, strict=True))
