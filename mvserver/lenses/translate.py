"""One SELECT of a program as a SELECT of the first dialect, with what its rows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mvserver import sqlstates
from mvserver.lenses import metadata
from mvserver.lenses.nullability import Null, Nullability
from mvserver.lenses.outputs import Output, check_names, with_objects
from mvserver.lenses.problems import Place, Problem, problem, unsupported
from mvserver.lenses.program import Duration, Projection, RowKind, Select, Selection, Wildcard, Window
from mvserver.lenses.rows import KEY, META, VALUE, Facet, Rows, column, key_of
from mvserver.lenses.scope import Item, Scope
from mvserver.lenses.sources import From, KeyPart, Topics, from_of, wrong_kind
from mvserver.lenses.values import aggregates_in, expression, may_aggregate
from mvserver.lenses.walking import nodes
from mvserver.lenses.written import Written, joined, written
from mvserver.quoting import quoted

_WINDOWED = "windowed"  # the name of the sub-query that a window is over


@dataclass(frozen=True)
class Translated:
    """``text`` names the queries in ``reads``, which stand before it as WITH; ``key`` of the rows None keeps the bytes
    of the source's key."""

    text: Written
    rows: Rows
    reads: tuple[str, ...]
    grace: Duration | None = None
    aggregated: bool = False
    findings: tuple[Problem, ...] = ()  # values that may be NULL where the original takes none


@dataclass(frozen=True)
class Form:
    """What is made of a result. ``casts`` are the types that a whole key or value is to have, ``objects`` the fields of
    one that is an object, ``carried`` what is kept of ``_meta`` for readers of the result. Where it ``leaves_out``
    rows, a NULL that is to be the whole value is none."""

    casts: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    carried: frozenset[metadata.Path] = frozenset()
    leaves_out: bool = False

    def made(self, outputs: Sequence[Output]) -> list[Output]:
        return [made for each in outputs for made in self._made(each)]

    def _made(self, output: Output) -> Sequence[Output]:
        if output.column in self.objects:
            return [
                replace(output, column=column(output.column, name), text=_field_of(output, name), never_null=False)
                for name in self.objects[output.column]
            ]
        if output.column not in self.casts:
            return [output]
        return [replace(output, text=written("CAST(", output.text, f" AS {self.casts[output.column]})"))]

    def needed(self, values: Sequence[Output]) -> Written | None:
        """The whole value, if a row without one is none."""
        return values[0].text if self.leaves_out and _facet(values).primitive else None


def _field_of(output: Output, name: str) -> Written:
    return written("(", output.text, f").{quoted(name)}")


def translate(
    select: Select,
    named: Mapping[str, Rows],
    topics: Topics,
    form: Form | None = None,
) -> Translated:
    form = form or Form()
    source = from_of(select, named, topics)
    if select.group_by:
        return _aggregated(select, source, form)
    for each in select.projections:
        if isinstance(each, Projection) and aggregates_in(each.expression):
            raise unsupported(
                each.place, "an aggregate needs GROUP BY", "GROUP BY an expression: it is the result's key."
            )
    if select.window is not None:
        raise problem(select.window.place, sqlstates.SYNTAX_ERROR, "WINDOW BY needs GROUP BY", "Add GROUP BY.")
    if source.kind is not select.kind:
        raise wrong_kind(select, source.kind)
    if select.laterals and source.kind is RowKind.TABLE:
        raise unsupported(
            select.laterals[0].place,
            "LATERAL over a TABLE is not supported",
            "Several rows would have one key. Read the topic with SELECT STREAM.",
        )
    return _projected(select, source, form)


# --- without groups -------------------------------------------------------------------------------------------------
def _projected(select: Select, source: From, form: Form) -> Translated:
    text, scope = _with_laterals(select, source)
    nulls = _nulls(select, scope)
    values = _values(select, scope, nulls)
    keys = _keys(select, source, scope, nulls)
    if source.made_key:
        _refuse_objects(select, scope)
        values = list(map(_only, values))
    values = form.made(with_objects(values))
    keys = None if keys is None else form.made(keys)
    kept = _kept_meta(select, scope, form.carried)
    outputs = [*(keys or ()), *values, *kept.values()]
    if source.made_key:
        result = _grouped(_select(outputs, text, select, scope), source.made_key, form.needed(values))
    else:
        result = _select(outputs, text, select, scope, needed=form.needed(values))
    key = None if keys is None else key_of([each.column for each in keys])
    rows = Rows(select.kind, key, _facet(values), not_null=_never_null(outputs), meta=frozenset(kept))
    return Translated(result, rows, source.reads, findings=tuple(nulls.findings))


def _kept_meta(select: Select, scope: Scope, carried: frozenset[metadata.Path]) -> Mapping[metadata.Path, Output]:
    """Columns for what a stream of the records of one topic keeps of them."""
    if select.kind is not RowKind.STREAM or len(scope.sources) > 1:
        return {}
    ((_, rows),) = scope.sources
    paths = sorted(path for path in carried if rows.records or path in rows.meta)
    texts = {path: scope.text(Selection((META, *path), select.place)) for path in paths}
    return {path: Output(metadata.column(path), text, select.place) for path, text in texts.items()}


def _refuse_objects(select: Select, scope: Scope) -> None:
    for each in select.projections:
        for node in nodes(each.expression) if isinstance(each, Projection) else ():
            if isinstance(node, Selection) and scope.is_object(node):
                raise unsupported(
                    node.place,
                    f"the whole {node.parts[-1]} cannot be a value of a join of TABLEs that has no key of one of them",
                    "Select its fields: each of them AS name.field.",
                )


def _only(output: Output) -> Output:
    """The value of the one row that a group has: its most frequent one, which needs no order of the rows."""
    return replace(output, text=written("mode() WITHIN GROUP (ORDER BY ", output.text, ")"))


def _nulls(select: Select, scope: Scope) -> Nullability:
    if select.where is not None:
        expression(select.where, scope)  # what is wrong with it is told before what it may be
    nulls = Nullability(scope, select.where)
    nulls.condition(select.where)
    return nulls


def _never_null(outputs: Sequence[Output]) -> frozenset[str]:
    return frozenset(each.column for each in outputs if each.never_null)


def _with_laterals(select: Select, source: From) -> tuple[Written, Scope]:
    text, scope = source.text, source.scope
    for lateral in select.laterals:
        array = expression(lateral.array, scope)
        text = written(text, lateral.place, " CROSS JOIN UNNEST(", array, f") AS {quoted(lateral.alias)}")
        scope = replace(scope, items=(*scope.items, Item(lateral.alias, None)))
    return text, scope


def _grouped(text: Written, by: Sequence[Written], needed: Written | None) -> Written:
    text.add(" GROUP BY ", joined(", ", list(by)))
    return text if needed is None else text.add(" HAVING (", needed, ") IS NOT NULL")


def _select(
    outputs: Sequence[Output], source: Written, select: Select, scope: Scope, needed: Written | None = None
) -> Written:
    check_names(outputs)
    items = joined(", ", [written(each.text, f" AS {quoted(each.column)}") for each in outputs])
    result = written(select.place, "SELECT ", items, " FROM ", source)
    conditions = [] if select.where is None else [expression(select.where, scope)]
    conditions += [] if needed is None else [written("(", needed, ") IS NOT NULL")]
    return result.add(" WHERE ", joined(" AND ", conditions)) if conditions else result


# --- the value ------------------------------------------------------------------------------------------------------
def _values(select: Select, scope: Scope, nulls: Nullability, *, aggregates: bool = False) -> Sequence[Output]:
    outputs: list[Output] = []
    whole: Place | None = None
    for each in select.projections:
        if isinstance(each, Wildcard):
            outputs += [replace(output, never_null=nulls.never(output.text.text)) for output in _expanded(each, scope)]
            continue
        target = each.target
        if target is not None and target.facet == KEY:
            continue
        if target is not None and not target.path:
            whole = target.place
            path: tuple[str, ...] = (VALUE,)
        else:
            path = (_default_name(each),) if target is None else target.path
        text = expression(each.expression, scope, aggregates=aggregates)
        outputs.append(Output(path[0], text, each.place, nulls.of(each.expression) is Null.NEVER, path[1:]))
    if whole is not None and len(outputs) > 1:
        raise problem(
            whole, sqlstates.SYNTAX_ERROR, "AS _value makes the whole value, and other projections add fields to it",
            "Leave one of them out.",
        )  # fmt: skip
    if not outputs:
        raise problem(
            select.place,
            sqlstates.SYNTAX_ERROR,
            "the SELECT projects nothing into the value",
            "Project at least one field.",
        )
    return outputs


def _default_name(projection: Projection) -> str:
    node = projection.expression
    if not isinstance(node, Selection):
        return projection.text
    last = node.parts[-1]
    if last in (KEY, VALUE) and len(node.parts) <= 2:
        return last.removeprefix("_")
    return last


def _expanded(wildcard: Wildcard, scope: Scope) -> Sequence[Output]:
    """The fields of the value that ``*`` stands for."""
    prefix = wildcard.prefix
    items = list(scope.sources)
    if prefix and prefix[0] not in (KEY, VALUE):
        items = [(alias, rows) for alias, rows in items if alias == prefix[0]]
        if not items:
            raise problem(
                wildcard.place,
                sqlstates.UNDEFINED_TABLE,
                f'"{prefix[0]}" is no source of this SELECT',
                "Name one of FROM.",
            )
        prefix = prefix[1:]
    if len(prefix) > 1 or (prefix and prefix[0] not in (KEY, VALUE)):
        raise unsupported(wildcard.place, "the fields of a field cannot be expanded", "Name them.")
    if prefix and prefix[0] == KEY:
        return [each for alias, rows in items for each in _key_fields(alias, rows, scope, wildcard.place)]
    return [
        Output(name, written(wildcard.place, scope.reference(alias, name)), wildcard.place)
        for alias, rows in items
        for name in rows.value_columns
    ]


def _key_fields(alias: str, rows: Rows, scope: Scope, place: Place) -> Sequence[Output]:
    """``_key.*`` puts the fields of the key into the value."""
    if rows.key is None or rows.key.primitive:
        raise problem(
            place,
            sqlstates.UNDEFINED_COLUMN,
            f'the key of "{alias}" has no fields',
            "Name the key itself: _key AS name.",
        )
    return [
        Output(field, written(place, scope.reference(alias, column(KEY, field))), place) for field in rows.key.fields
    ]


def _facet(values: Sequence[Output]) -> Facet:
    names = tuple(each.column for each in values)
    return Facet() if names == (VALUE,) else Facet(names)


# --- the key --------------------------------------------------------------------------------------------------------
def _keys(select: Select, source: From, scope: Scope, nulls: Nullability) -> Sequence[Output] | None:
    """What AS _key says, else the key of the source; None where nothing is known of that."""
    given = [each for each in select.projections if isinstance(each, Projection) and _is_key(each)]
    if not given:
        return _kept(source, select, nulls)
    if source.kind is RowKind.TABLE:
        raise unsupported(
            given[0].place, "a TABLE keeps its key", "GROUP BY the new key, or write with SELECT STREAM from the topic."
        )
    whole = [each for each in given if each.target is not None and not each.target.path]
    if whole and len(given) > 1:
        raise problem(
            given[1].place, sqlstates.SYNTAX_ERROR, "the key is given as a whole and by fields, or twice",
            "Write AS _key once, or AS _key.field for each field.",
        )  # fmt: skip
    if whole:
        return _whole_key(whole[0], scope, nulls)
    outputs = []
    for each in given:
        assert each.target is not None  # noqa: S101 - it is a target in the key
        text, (first, *inside) = expression(each.expression, scope), each.target.path
        never = nulls.of(each.expression) is Null.NEVER
        outputs.append(Output(column(KEY, first), text, each.place, never, tuple(inside)))
    return with_objects(outputs)


def _is_key(projection: Projection) -> bool:
    return projection.target is not None and projection.target.facet == KEY


def _whole_key(projection: Projection, scope: Scope, nulls: Nullability) -> Sequence[Output]:
    node, place = projection.expression, projection.place
    fields = scope.key_columns(node) if isinstance(node, Selection) else None
    if fields is not None:
        return [Output(column(KEY, field), written(place, text), place, nulls.never(text)) for field, text in fields]
    return [Output(KEY, expression(node, scope), place, nulls.of(node) is Null.NEVER)]


def _kept(source: From, select: Select, nulls: Nullability) -> Sequence[Output] | None:
    if source.key is None:
        return None
    return [
        Output(column(KEY, part.name), part.text, select.place, part.never_null or nulls.never(part.text.text))
        for part in source.key
    ]


# --- groups ---------------------------------------------------------------------------------------------------------
def _aggregated(select: Select, source: From, form: Form) -> Translated:
    if source.kind is RowKind.TABLE and select.kind is RowKind.STREAM:
        raise wrong_kind(select, source.kind)
    if select.window is not None and source.kind is RowKind.TABLE:
        raise problem(
            select.window.place,
            sqlstates.SYNTAX_ERROR,
            "WINDOW BY is for streams",
            "Read the topic with SELECT STREAM: a row of a TABLE has no time of its own.",
        )
    for each in select.projections:
        if isinstance(each, Wildcard):
            raise unsupported(each.place, "* cannot be used with GROUP BY", "Name the fields of the groups.")
        if _is_key(each):
            raise unsupported(each.place, "the key of an aggregate is its GROUP BY", "Leave AS _key out.")
    if not any(isinstance(each, Projection) and may_aggregate(each.expression) for each in select.projections):
        raise problem(select.place, sqlstates.GROUPING_ERROR, "GROUP BY needs an aggregate", "Add one, as COUNT(*).")
    text, scope = _with_laterals(select, source)
    nulls = _nulls(select, scope)
    groups = _groups(select, scope, nulls, form)
    if select.window is not None:
        return _windowed(select, select.window, source, text, scope, (groups, nulls), form)
    keys = [Output(column(KEY, part.name), part.text, select.place, part.never_null) for part in groups]
    values = _aggregates(select, scope, nulls, form)
    result = _select([*keys, *values], text, select, scope)
    result = _grouped(result, [part.text for part in groups], form.needed(values))
    rows = Rows(
        RowKind.TABLE, key_of([each.column for each in keys]), _facet(values), not_null=_never_null([*keys, *values])
    )
    return Translated(result, rows, source.reads, aggregated=True, findings=tuple(nulls.findings))


def _aggregates(select: Select, scope: Scope, nulls: Nullability, form: Form) -> Sequence[Output]:
    return form.made(with_objects(_values(select, scope, nulls, aggregates=True)))


def _groups(select: Select, scope: Scope, nulls: Nullability, form: Form) -> Sequence[KeyPart]:
    """What GROUP BY says: a single value is a primitive key."""
    parts: list[KeyPart] = []
    for each in select.group_by:
        fields = scope.key_columns(each.expression) if isinstance(each.expression, Selection) else None
        if fields is not None:
            parts += [KeyPart(field, written(each.place, text), nulls.never(text)) for field, text in fields]
            continue
        text = expression(each.expression, scope)
        parts.append(KeyPart(_default_name(each), text, nulls.of(each.expression) is Null.NEVER))
    if len(parts) == 1 and select.window is None:
        (made,) = form.made([Output(KEY, parts[0].text, select.place)])
        return [replace(parts[0], name=None, text=made.text)]
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise problem(
            select.group_by[0].place, sqlstates.DUPLICATE_COLUMN, "two expressions of GROUP BY have one name",
            "Give them names in a WITH: they are the fields of the key.",
        )  # fmt: skip
    return parts


def _windowed(
    select: Select,
    window: Window,
    source: From,
    text: Written,
    scope: Scope,
    inside: tuple[Sequence[KeyPart], Nullability],
    form: Form,
) -> Translated:
    """A window is over a sub-query that has all columns of the sources, and the groups as columns of their own."""
    groups, nulls = inside
    columns: dict[tuple[str, str], str] = {}
    items: list[Written] = []
    for alias, rows in scope.sources:
        for name in (*rows.key_columns, *rows.value_columns, *map(metadata.column, sorted(rows.meta))):
            columns[alias, name] = f"c{len(columns)}"
            items.append(written(f"{scope.reference(alias, name)} AS {quoted(columns[alias, name])}"))
    elements: dict[tuple[str, ...], str] = {}
    for selection in _elements(select, scope):
        name = f"e{len(elements)}"
        if selection.parts not in elements:
            elements[selection.parts] = f'"{_WINDOWED}".{quoted(name)}'
            items.append(written(scope.text(selection), f" AS {quoted(name)}"))
    items += [written(part.text, f' AS "g{i}"') for i, part in enumerate(groups)]
    inner = written(select.place, "SELECT ", joined(", ", items), " FROM ", text)
    if select.where is not None:
        inner.add(" WHERE ", expression(select.where, scope))
    outside = Scope(
        scope.items,
        lambda alias, name: f'"{_WINDOWED}".{quoted(columns[alias, name])}',
        records=False,
        elements=elements,
    )
    names = [f'"{_WINDOWED}"."g{i}"' for i in range(len(groups))]
    keys = [
        Output(
            column(KEY, part.name),
            written(part.text.marks[0][1] if part.text.marks else select.place, name),
            select.place,
            part.never_null,
        )
        for part, name in zip(groups, names, strict=True)
    ]
    bounds = ("window_start", "window_end")
    keys += [Output(column(KEY, each), written(window.place, each), window.place, never_null=True) for each in bounds]
    seen_outside = Nullability(outside, select.where)
    values = _aggregates(select, outside, seen_outside, form)
    result = _select([*keys, *values], _window(window, inner, len(groups)), replace(select, where=None), outside)
    result = _grouped(result, [written(", ".join([*names, *bounds]))], form.needed(values))
    rows = Rows(
        RowKind.TABLE, key_of([each.column for each in keys]), _facet(values), not_null=_never_null([*keys, *values])
    )
    findings = (*nulls.findings, *seen_outside.findings)
    return Translated(result, rows, source.reads, window.grace, aggregated=True, findings=findings)


def _elements(select: Select, scope: Scope) -> Iterator[Selection]:
    """What the projections use of the elements of LATERALs."""
    for each in select.projections:
        if isinstance(each, Projection):
            for node in nodes(each.expression):
                if isinstance(node, Selection) and scope.is_element(node):
                    yield node


def _window(window: Window, inner: Written, groups: int) -> Written:
    size = f"{window.size.amount} {window.size.unit}"
    if window.kind == "HOP" and window.advance is not None:
        advance = f"{window.advance.amount} {window.advance.unit}"
        bounds = f", SIZE {size}, ADVANCE BY {advance}"
    elif window.kind == "SESSION":
        parts = ", ".join(f'"g{i}"' for i in range(groups))
        bounds = f" PARTITION BY {parts}, GAP {size}"
    else:
        bounds = f", SIZE {size}"
    return written(window.place, f"{window.kind}((", inner, f'){bounds}) AS "{_WINDOWED}"')
