"""The compound parts of a record, as they are written into one column and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable

from catalog.acl import Acl, AclItem, Privilege, letters
from catalog.model import Column, EnumLabel, Index, IndexColumn, NamedSource, StoredSelect


def pairs_text(pairs: Iterable[tuple[str, str]]) -> str:
    return json.dumps([list(pair) for pair in pairs], ensure_ascii=False)


def pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in json.loads(text))


def names_text(names: Iterable[str]) -> str:
    return json.dumps(list(names), ensure_ascii=False)


def names(text: str) -> tuple[str, ...]:
    return tuple(str(name) for name in json.loads(text))


def columns_text(columns: Iterable[Column]) -> str:
    return json.dumps(
        [[c.name, c.type, c.not_null, *([c.spelling] if c.spelling else [])] for c in columns], ensure_ascii=False
    )


def columns(text: str) -> tuple[Column, ...]:
    return tuple(
        Column(str(name), str(type_), bool(not_null), *map(str, spelling))
        for name, type_, not_null, *spelling in json.loads(text)
    )


def select_text(select: StoredSelect | None) -> str | None:
    if select is None:
        return None
    sources = [[s.start, s.end, s.columns, s.relation_id, s.system and list(s.system)] for s in select.sources]
    return json.dumps([select.text, sources], ensure_ascii=False)


def select(text: str | None) -> StoredSelect | None:
    if text is None:
        return None
    written, sources = json.loads(text)
    return StoredSelect(
        str(written),
        tuple(
            NamedSource(int(start), int(end), int(columns), relation_id, None if system is None else tuple(system))
            for start, end, columns, relation_id, system in sources
        ),
    )


def indexes_text(indexes: Iterable[Index]) -> str:
    return json.dumps(
        [
            [i.oid, i.name, [[c.name, c.descending, c.nulls_first] for c in i.columns],
             i.unique, i.method, i.nulls_distinct]
            for i in indexes
        ],
        ensure_ascii=False,
    )  # fmt: skip


def indexes(text: str) -> tuple[Index, ...]:
    return tuple(
        Index(int(oid), str(name), tuple(IndexColumn(*column) for column in columns), *options)
        for oid, name, columns, *options in json.loads(text)
    )


def labels_text(labels: Iterable[EnumLabel]) -> str:
    return json.dumps([[label.oid, label.name, label.order] for label in labels], ensure_ascii=False)


def labels(text: str) -> tuple[EnumLabel, ...]:
    return tuple(EnumLabel(int(oid), str(name), float(order)) for oid, name, order in json.loads(text))


def acl_text(acl: Acl | None) -> str | None:
    if acl is None:
        return None
    return json.dumps([[i.grantee, i.grantor, letters(i.privileges), letters(i.grantable)] for i in acl])


def acl(text: str | None) -> Acl | None:
    if text is None:
        return None
    return tuple(
        AclItem(grantee, grantor, frozenset(map(Privilege, given)), frozenset(map(Privilege, grantable)))
        for grantee, grantor, given, grantable in json.loads(text)
    )
