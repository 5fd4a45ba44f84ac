"""GROUPING SETS in a batch: each of its rows counts in one group of each set.

The keys that a set leaves out are NULL in its groups, and the number of the set is the last key, so that the NULL of a
total is not taken for a NULL of the data.
"""

from __future__ import annotations

from collections.abc import Sequence

SET = "grouping_set"

Sets = tuple[tuple[int, ...], ...]
"""Of each set the places of its keys."""


def grouped(relation: str, sets: Sets) -> str:
    """A FROM item with a row for each row of ``relation`` and set; the relation itself where there are no sets."""
    if not sets:
        return relation
    return f"(SELECT *, unnest(range({len(sets)}))::INTEGER AS {SET} FROM {relation})"


def group_keys(keys: Sequence[str], sets: Sets) -> tuple[str, ...]:
    """The keys of the groups, over what :func:`grouped` makes."""
    if not sets:
        return tuple(keys)
    texts = []
    for i, key in enumerate(keys):
        numbers = [str(number) for number, members in enumerate(sets) if i in members]
        whole = len(numbers) == len(sets)
        texts.append(key if whole else f"CASE WHEN {SET} IN ({', '.join(numbers)}) THEN {key} END")
    return (*texts, SET)


def grouped_in_place(relation: str, keys: Sequence[str], sets: Sets) -> str:
    """The same as :func:`grouped`, with the keys that a set leaves out NULL already."""
    if not sets:
        return relation
    *texts, _ = group_keys(keys, sets)
    replaced = ", ".join(f"{text} AS {key}" for text, key in zip(texts, keys, strict=True) if text != key)
    star = f"* REPLACE ({replaced})" if replaced else "*"
    return f"(SELECT {star} FROM {grouped(relation, sets)})"
