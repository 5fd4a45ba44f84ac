"""Table names of a pull query: resolved against the catalog and replaced by what DuckDB knows them as.

A materialized view becomes ``_views."<its id>"``, a view the sub-query that it stands for, a catalog relation a
sub-query over the system catalog, a CTE's name stays. Every table gets an alias, so that ``visits.url`` and
``public.visits.url`` keep their meaning.

The names in a view's text mean what they did when it was made, and its owner must be allowed to read what they name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import sqlglot
from sqlglot import exp

from catalog import row_security
from catalog.acl import Privilege
from catalog.authority import Authority
from catalog.model import NamedSource, Relation
from catalog.refusals import denied, denied_for
from mvserver import interrupts, limits, sqlstates
from mvserver.compiler.tables import TABLE, unreadable
from mvserver.dialect import binding, guard
from mvserver.dialect.guard import TABLE_FUNCTIONS, function_name
from mvserver.dialect.marks import RELATION, SYSTEM_RELATION
from mvserver.errors import SqlError
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, PG_CATALOG
from mvserver.pgcatalog.system import LIVE_SCHEMA, SystemCatalog
from mvserver.serving.api import Place, PullScope, ReadsStream, StreamRead
from mvserver.serving.engine.database import VIEW_SCHEMA
from mvserver.serving.plan import histories, row_policies
from mvserver.serving.plan.histories import NamedChanges
from mvserver.serving.plan.streams import StreamTables
from mvserver.sql.dialect import parse_pull
from mvserver.sql.pull_parser import AS_OF

_SUPERUSERS_ONLY = frozenset({"pg_authid", "pg_shadow"})
_KEPT = frozenset({"materialized view", "view"})
SYSTEM_SCHEMAS = (PG_CATALOG, INFORMATION_SCHEMA, LIVE_SCHEMA)


@dataclass
class Reads:
    """What a query was found to read."""

    views: dict[str, Relation] = field(default_factory=dict)  # by id, in order of appearance
    system: set[tuple[str, str]] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    streams: list[StreamRead] = field(default_factory=list)
    named: list[NamedSource] = field(default_factory=list)  # the names in the query's own text
    of_the_past: bool = False  # a view's history, or a view as it was
    expanded: list[Relation] = field(default_factory=list)  # views that became sub-queries, each as often as it did
    places: list[Place] = field(default_factory=list)  # of parameters, as of which views are read
    as_of: Place | str | None = None  # that of the last view, or its text
    secured: list[Relation] = field(default_factory=list)  # of which policies decide what rows are seen


@dataclass(frozen=True)
class _Text:
    """Whose names are looked at: the query's own, or with ``sources`` those of a view's text."""

    authority: Authority
    tableoid: bool  # it asks for the hidden column
    ctes: frozenset[str] = frozenset()
    sources: dict[int, NamedSource] | None = None  # by where they stand


class NameResolver:
    def __init__(
        self,
        snapshot: CatalogSnapshot,
        scope: PullScope,
        system: SystemCatalog,
        database_name: str,
        declared: int = 0,
    ) -> None:
        """``declared`` is how many parameters the client has said the types of."""
        self._declared = declared
        self._snapshot = snapshot
        self._scope = scope
        self._system = system
        self._database_name = database_name
        self._authority = snapshot.authority(scope.role)
        self.reads = Reads()

    def resolve(self, tree: exp.Expr) -> None:
        """Replace the tables in place."""
        self._parameters = max(self._declared, parameters_of(tree))
        self._streams = StreamTables(tree)
        self.reads.streams = self._streams.reads
        self._replace_all(tree, _Text(self._authority, _asks_tableoid(tree)))

    def _replace_all(self, tree: exp.Expr, text: _Text) -> None:
        for table, ctes in list(_tables(tree, frozenset())):
            interrupts.check()  # a relation of the catalog is a query that has to be parsed
            self._replace(table, replace(text, ctes=ctes))

    # --- one table --------------------------------------------------------------------------------------------------
    def _replace(self, table: exp.Table, text: _Text) -> None:
        if isinstance(table.this, exp.Func):
            _function_in_from(table)
            return
        if not isinstance(table.this, exp.Identifier):
            return
        parts = [_fold(part) for part in table.parts if isinstance(part, exp.Identifier)]
        as_of: str | int | None = table.meta.pop(AS_OF, None)
        if len(parts) == 1 and parts[0] in text.ctes:
            if as_of is not None:
                raise histories.refused(parts[0], _position(table))
            return
        if len(parts) > 3:
            raise SqlError(
                sqlstates.SYNTAX_ERROR, f"improper qualified name (too many dotted names): {'.'.join(parts)}"
            )
        found, columns_then = self._meant(table, parts, text)
        if as_of is not None and not _has_history(found):
            raise histories.refused(parts[-1], _position(table))
        alias = table.args.get("alias")
        if alias is None or alias.this is None:
            columns = alias.args.get("columns") if alias is not None else None
            alias = exp.TableAlias(this=exp.to_identifier(parts[-1], quoted=True), columns=columns)
        if isinstance(found, Relation) and found.select is not None:
            _put(table, self._stands_for(found, alias, columns_then))
            return
        if isinstance(found, Relation) and found.kind != "materialized view":
            rows = self._streams.query(table, found, self._path(found), alias.this.name)
            _put(table, exp.Subquery(this=rows, alias=alias))
            return
        if isinstance(found, NamedChanges):
            self.reads.views.setdefault(found.view.id, found.view)
            self.reads.of_the_past = True
            sealed = self._hides_rows(found.view, text)
            histories.read_changes(table, found, self._database_name, sealed=sealed)
            table.set("alias", alias)
            self._secure(table, found.view, text)
            return
        if isinstance(found, Relation) and (as_of is not None or self._scope.as_of):
            self.reads.views.setdefault(found.id, found)
            self.reads.of_the_past = True
            sealed = self._hides_rows(found, text)
            place = self._place(as_of, sealed=sealed) if isinstance(as_of, int) else as_of or self._scope.as_of
            self.reads.as_of = place
            rows = histories.rows_as_of(found, place, self._database_name, alias, sealed=sealed)
            rows.meta[RELATION] = found
            _put(table, rows)
            self._secure(rows, found, text)
            return
        if isinstance(found, Relation):
            self.reads.views.setdefault(found.id, found)
            table.set("this", exp.to_identifier(found.id, quoted=True))
            table.set("db", exp.to_identifier(VIEW_SCHEMA, quoted=True))
            table.set("catalog", exp.to_identifier(self._database_name, quoted=True))
            table.set("alias", alias)
            table.meta[RELATION] = found
            self._secure(table, found, text)
            return
        schema, name = found
        if name in _SUPERUSERS_ONLY and not text.authority.superuser:
            raise denied_for(f"table {name}", None if text.sources else _position(table))
        if self._system.is_live(schema, name):
            self.reads.live.add(name)
        self.reads.system.add(found)
        query = self._system.relation_query(
            schema, name, self._database_oid(), tableoid=text.tableoid, viewer=self._snapshot.viewer(self._scope.role)
        )
        rows = exp.Subquery(this=sqlglot.parse_one(query, read="duckdb"), alias=alias)
        rows.meta[SYSTEM_RELATION] = found
        _put(table, rows)

    def _place(self, parameter: int, *, sealed: bool) -> Place:
        """That of a parameter, with two further ones. Those of one parameter are the same wherever it stands."""
        known = next((place for place in self.reads.places if place.parameter == parameter), None)
        if known is not None and known.sealed != sealed:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"parameter ${parameter} cannot be the place of views with row policies and of others",
                hint="Use a parameter for each.",
            )
        if known is None:
            free = self._parameters + 2 * len(self.reads.places) + 1
            known = Place(parameter, free, free + 1, sealed)
            self.reads.places.append(known)
        return known

    def _hides_rows(self, view: Relation, text: _Text) -> bool:
        return row_security.in_force(view, self._snapshot.policies, text.authority) is not None

    def _secure(self, rows: exp.Table | exp.Subquery, view: Relation, text: _Text) -> None:
        """Puts in its place the rows that the reader may see: who asks, or the owner of the view that names it."""
        policies = row_security.in_force(view, self._snapshot.policies, text.authority)
        if policies is None:
            return
        if not self._scope.row_security:
            raise row_policies.affected(view)
        self.reads.secured.append(view)
        place = exp.Placeholder()
        rows.replace(place)
        seen = row_policies.seen_rows(rows, view, row_policies.condition(view, policies), rows.args["alias"])
        for key in ("joins", "laterals", "sample"):
            if rows.args.get(key):
                seen.set(key, rows.args[key])
                rows.set(key, None)
        if RELATION in rows.meta:
            seen.meta[RELATION] = rows.meta[RELATION]
        place.replace(seen)

    def _meant(
        self, table: exp.Table, parts: list[str], text: _Text
    ) -> tuple[Relation | NamedChanges | tuple[str, str], int]:
        """What the name means, and how many of its columns the text knows."""
        if text.sources is None:
            found = self._find(parts, _position(table))
            start, end = _span(table)
            if isinstance(found, NamedChanges):
                return found, 0
            if isinstance(found, Relation):
                named = NamedSource(start, end, len(found.columns), relation_id=found.id)
            else:
                named = NamedSource(start, end, 0, system=found)
            self.reads.named.append(named)
            return found, named.columns
        source = text.sources[_span(table)[0]]
        if source.system is not None:
            return source.system, source.columns
        relation = self._snapshot.relations_by_id[source.relation_id or ""]
        if not text.authority.holds(relation, Privilege.SELECT):
            raise denied(relation)
        return relation, source.columns

    def _stands_for(self, view: Relation, alias: exp.TableAlias, columns_then: int) -> exp.Subquery:
        """The view's text, resolved as its owner; with the columns that it had when whoever names it was made."""
        assert view.select is not None  # noqa: S101 - asked for by who calls
        self.reads.expanded.append(view)
        if len(self.reads.expanded) > limits.EXPANDED_VIEWS_MAX:
            raise SqlError(
                sqlstates.STATEMENT_TOO_COMPLEX,
                "the query reads too many views",
                detail=f"Views over views count each time; the limit is {limits.EXPANDED_VIEWS_MAX}.",
            )
        holder = exp.Paren(this=parse_pull(view.select.text))
        sources = {source.start: source for source in view.select.sources}
        guard.check(holder.this)
        self._replace_all(
            holder.this, _Text(self._snapshot.authority(view.owner), _asks_tableoid(holder), sources=sources)
        )
        names = [exp.to_identifier(column.name, quoted=True) for column in view.columns]
        given = list(alias.args.get("columns") or ())
        whole = exp.TableAlias(this=alias.this.copy(), columns=[*given, *names[len(given) :]])
        query: exp.Expr = holder.this.pop()
        if columns_then < len(names):
            inner = exp.TableAlias(this=exp.to_identifier(view.name, quoted=True), columns=names)
            known = [exp.column(name.copy(), quoted=True) for name in names[:columns_then]]
            query = exp.select(*known).from_(exp.Subquery(this=query, alias=inner))
            whole.set("columns", whole.args["columns"][:columns_then])
        rows = exp.Subquery(this=query, alias=whole)
        rows.meta[RELATION] = view
        return rows

    def _path(self, relation: Relation) -> tuple[str, str, str]:
        schema = self._snapshot.schemas_by_id[relation.schema_id]
        return self._snapshot.databases_by_id[schema.database_id].name, schema.name, relation.name

    def _find(self, parts: list[str], position: int | None) -> Relation | NamedChanges | tuple[str, str]:
        try:
            return self._named(parts, position)
        except SqlError as error:
            view = histories.view_name(parts[-1])
            if view is None or error.sqlstate != sqlstates.UNDEFINED_TABLE:
                raise
            found = self._view_named([*parts[:-1], view], position)
            if found is None:
                raise
            return NamedChanges(found)

    def _view_named(self, parts: list[str], position: int | None) -> Relation | None:
        try:
            found = self._named(parts, position)
        except SqlError as error:
            if error.sqlstate != sqlstates.UNDEFINED_TABLE:
                raise
            return None
        return found if _has_history(found) else None

    def _named(self, parts: list[str], position: int | None) -> Relation | tuple[str, str]:
        name = parts[-1]
        if len(parts) == 3:
            return self._in_schema(parts[0], parts[1], name, ".".join(parts), position)
        if len(parts) == 2:
            return self._in_schema(self._scope.database, parts[0], name, ".".join(parts), position)
        path = self._scope.search_path
        for schema in path if PG_CATALOG in path else (PG_CATALOG, *path):
            if schema in SYSTEM_SCHEMAS:
                if self._system.has(schema, name):
                    return schema, name
                continue
            relation = self._snapshot.relations_by_name.get((self._scope.database, schema, name))
            if relation is not None and self._may_look_into(self._scope.database, schema):
                return self._readable(relation, position)
        raise _no_relation(name, position)

    def _in_schema(
        self, database: str, schema: str, name: str, shown: str, position: int | None
    ) -> Relation | tuple[str, str]:
        if database not in self._snapshot.databases_by_name:
            raise SqlError(sqlstates.INVALID_CATALOG_NAME, f'database "{database}" does not exist', position=position)
        if database != self._scope.database:
            found = self._snapshot.databases_by_name[database]
            if not self._authority.holds(found, Privilege.CONNECT):
                raise denied_for(f'database "{database}"', position)
        if schema in SYSTEM_SCHEMAS:
            if self._system.has(schema, name):
                return schema, name
            raise _no_relation(shown, position)
        if not self._may_look_into(database, schema):
            raise denied_for(f"schema {schema}", position)
        relation = self._snapshot.relations_by_name.get((database, schema, name))
        if relation is not None:
            return self._readable(relation, position)
        if (database, schema) not in self._snapshot.schemas_by_name and shown.count(".") == 2:
            raise SqlError(sqlstates.INVALID_SCHEMA_NAME, f'schema "{schema}" does not exist', position=position)
        raise _no_relation(shown, position)

    def _may_look_into(self, database: str, schema: str) -> bool:
        """Also where there is no such schema: that is another error."""
        found = self._snapshot.schemas_by_name.get((database, schema))
        return found is None or self._authority.holds(found, Privilege.USAGE)

    def _readable(self, relation: Relation, position: int | None) -> Relation:
        if not self._authority.holds(relation, Privilege.SELECT):
            raise denied(relation, position)
        if relation.kind == TABLE:
            raise unreadable(relation.name, position)
        if relation.kind in _KEPT or self._scope.reads_streams:
            return relation
        raise ReadsStream(relation.kind, relation.name, position)

    def _database_oid(self) -> int:
        database = self._snapshot.databases_by_name.get(self._scope.database)
        return database.oid if database else 0


def _has_history(found: object) -> TypeGuard[Relation]:
    return isinstance(found, Relation) and found.kind == "materialized view"


def _put(table: exp.Table, query: exp.Subquery) -> None:
    """The query in the table's place, with what hung on that."""
    for key in ("joins", "laterals", "sample"):
        if table.args.get(key):
            query.set(key, table.args[key])
    table.replace(query)


def _no_relation(shown: str, position: int | None) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{shown}" does not exist', position=position)


def parameters_of(tree: exp.Expr) -> int:
    """The greatest number of a parameter, also of those that AS OF has."""
    places = [place for table in tree.find_all(exp.Table) if isinstance(place := table.meta.get(AS_OF), int)]
    return max([*binding.parameter_numbers(tree), *places], default=0)


def _fold(identifier: exp.Identifier) -> str:
    return str(identifier.this) if identifier.quoted else str(identifier.this).lower()


def _position(node: exp.Expr) -> int | None:
    """1-based offset of the name's first part."""
    starts = [part.meta["start"] for part in node.find_all(exp.Identifier) if "start" in part.meta]
    return min(starts) + 1 if starts else None


def _asks_tableoid(tree: exp.Expr) -> bool:
    return any(column.name.lower() == "tableoid" for column in interrupts.asking(tree.find_all(exp.Column)))


def _span(table: exp.Table) -> tuple[int, int]:
    """Where the name begins and ends in the text; (-1, -1) for one that is no part of it, as COPY's relation."""
    metas = [part.meta for part in table.parts if "end" in part.meta]
    return (metas[0]["start"], metas[-1]["end"] + 1) if metas else (-1, -1)


def _tables(node: exp.Expr, ctes: frozenset[str]) -> Iterator[tuple[exp.Table, frozenset[str]]]:
    """Every table with the CTE names it can see; a CTE sees those before it, and itself if RECURSIVE."""
    clause = node.args.get("with_")
    if clause is not None:
        visible = ctes
        if clause.args.get("recursive"):
            visible = visible | {_fold(cte.args["alias"].this) for cte in clause.expressions}
        for cte in clause.expressions:
            yield from _tables(cte.this, visible)
            visible = visible | {_fold(cte.args["alias"].this)}
        ctes = visible
    if isinstance(node, exp.Table):
        yield node, ctes
    for child in node.iter_expressions():
        if child is not clause:
            yield from _tables(child, ctes)


def _is_column(table: exp.Table, name: str) -> bool:
    """Whether the query uses the name as that of a column."""
    return any(column.name == name and not column.table for column in table.root().find_all(exp.Column))


_DOCUMENT_ROWS = frozenset({
    "json_array_elements", "jsonb_array_elements", "json_array_elements_text", "jsonb_array_elements_text",
})  # fmt: skip
"""Their column is ``value``, and the alias alone means it as well."""


def _function_in_from(table: exp.Table) -> None:
    """``FROM f(x)``: table functions stay, without PostgreSQL's schema; a scalar function becomes a one-row query."""
    table.set("db", None)
    table.set("catalog", None)
    name = function_name(table.this)
    if name in TABLE_FUNCTIONS or isinstance(table.this, exp.UDTF | exp.ExplodingGenerateSeries):
        return
    alias = table.args.get("alias")
    shown = alias.name if alias is not None and alias.name else name
    if name in _DOCUMENT_ROWS and not _is_column(table, shown):
        shown = "value"
    query = exp.Select(expressions=[exp.alias_(table.this.copy(), shown, quoted=True)])
    table.replace(exp.Subquery(this=query, alias=alias or exp.TableAlias(this=exp.to_identifier(name, quoted=True))))
