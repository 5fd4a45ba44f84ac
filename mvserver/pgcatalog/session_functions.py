"""Functions whose value depends on who asks: replaced in the statement by what they are for this session.

Also the casts to PostgreSQL's reg* types, which look names up by the session's search path.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog import row_security
from mvserver import sqlstates
from mvserver.claims import is_claim
from mvserver.errors import SqlError
from mvserver.pgcatalog import static_data
from mvserver.pgcatalog.privilege_functions import check_words, class_of, is_privilege_function, kind_of_function
from mvserver.pgcatalog.rows import MV_CATALOG_OID
from mvserver.pgcatalog.settings_table import DEFAULTS
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, INFORMATION_SCHEMA_OID, PG_CATALOG, PG_CATALOG_OID
from mvserver.pgcatalog.version import VERSION_TEXT
from mvserver.pgcatalog.visibility import FIRST_OWN_OID, Viewer

REG_TYPES = frozenset({
    "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper", "regoperator",
    "regcollation", "regconfig", "regdictionary",
})  # fmt: skip
_SHOWN_ONLY = frozenset({"regprocedure", "regoper", "regoperator", "regconfig", "regdictionary"})
"""Of these an oid is shown by its name; a name that no constant gives is not looked for."""
_SYSTEM_NAMESPACES = {
    PG_CATALOG: PG_CATALOG_OID, INFORMATION_SCHEMA: INFORMATION_SCHEMA_OID, "mv_catalog": MV_CATALOG_OID,
}  # fmt: skip


@dataclass
class SessionFacts:
    """``volatile``: a value was used that a cached plan must not keep; ``sets`` collects set_config. Claims are part of
    what a plan is kept by."""

    snapshot: CatalogSnapshot
    database: str
    search_path: tuple[str, ...]
    role: str
    settings: dict[str, str]
    backend_pid: int
    session_role: str = ""
    volatile: bool = False
    sets: tuple[tuple[str, str, bool], ...] = ()

    @property
    def viewer(self) -> Viewer | None:
        """None for a role that sees everything."""
        return self.snapshot.viewer(self.role)

    def namespaces(self) -> list[int]:
        """Oids of the schemas in which unqualified names are found."""
        found = [PG_CATALOG_OID]
        for schema in self.search_path:
            if schema in _SYSTEM_NAMESPACES:
                found.append(_SYSTEM_NAMESPACES[schema])
            elif (self.database, schema) in self.snapshot.schemas_by_name:
                found.append(self.snapshot.schemas_by_name[self.database, schema].oid)
        return found

    def schemas(self, *, implicit: bool) -> list[str]:
        path = [
            schema
            for schema in self.search_path
            if schema in _SYSTEM_NAMESPACES or (self.database, schema) in self.snapshot.schemas_by_name
        ]
        return [PG_CATALOG, *path] if implicit and PG_CATALOG not in path else path

    def setting(self, name: str) -> str | None:
        lowered = name.lower()
        self.volatile = self.volatile or not is_claim(lowered)
        if lowered in self.settings:
            return self.settings[lowered]
        return DEFAULTS.get(lowered)


def _text(value: str | None) -> exp.Expr:
    if value is None:
        return exp.cast(exp.null(), "TEXT", dialect="duckdb")
    return exp.Literal.string(value)


def _texts(values: list[str]) -> exp.Expr:
    if not values:
        return exp.cast(exp.Array(expressions=[]), "TEXT[]", dialect="duckdb")
    return exp.Array(expressions=[exp.Literal.string(value) for value in values])


def _numbers(values: list[int]) -> exp.Expr:
    return exp.Array(expressions=[exp.Literal.number(value) for value in values])


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _literal(node: exp.Expr | None) -> str | None:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def replace_function(name: str, arguments: list[exp.Expr], facts: SessionFacts) -> exp.Expr | None:
    """What stands for the call, or None where the function is not one of a session's."""
    if name in ("current_database", "current_catalog"):
        return _text(facts.database)
    if name == "current_schema":
        path = facts.schemas(implicit=False)
        return _text(path[0] if path else None)
    if name == "current_schemas" and (not arguments or isinstance(arguments[0], exp.Boolean)):
        return _texts(facts.schemas(implicit=not arguments or bool(arguments[0].this)))
    if name == "current_schemas":
        ifs = [
            exp.If(this=test, true=_texts(facts.schemas(implicit=implicit)))
            for test, implicit in ((arguments[0], True), (exp.Not(this=exp.Paren(this=arguments[0].copy())), False))
        ]
        return exp.Case(ifs=ifs)
    if name in ("current_user", "user", "current_role"):
        return _text(facts.role)
    if name == "session_user":
        return _text(facts.session_role or facts.role)
    if name in ("version", "current_version") and not arguments:
        return _text(VERSION_TEXT)
    if name == "pg_backend_pid":
        facts.volatile = True
        return exp.Literal.number(facts.backend_pid)
    if name == "current_setting":
        return _current_setting(arguments, facts)
    if name == "set_config" and len(arguments) == 3:
        return _set_config(arguments, facts)
    if name in ("pg_table_is_visible", "pg_relation_is_visible") and arguments:
        return _call("_is_visible", arguments[0], _numbers(facts.namespaces()))
    if is_privilege_function(name) and len(arguments) >= 2:
        return _privilege(name, arguments, facts)
    if name in _OF_RELATIONS and arguments:
        return _of_named_relation(name, arguments, facts)
    if name in _TELLING and arguments and facts.viewer is not None:
        return _call(name, seen(arguments[0], facts), *arguments[1:])
    if name == "row_security_active" and arguments:
        return _row_security_active(arguments[0], facts)
    if name == "to_regclass" and arguments:
        literal = _literal(arguments[0])
        if literal is not None:
            oid = relation_oid(literal, facts)
            return exp.null() if oid is None else _oid(oid)
        return seen(_call("_regclass_in", arguments[0], _numbers(facts.namespaces())), facts)
    if name in ("to_regtype", "to_regnamespace") and arguments and facts.viewer is not None:
        return seen(_call(name, arguments[0]), facts)
    return None


def seen(oid: exp.Expr, facts: SessionFacts) -> exp.Expr:
    """The oid, or NULL where it is of something that the session's role does not see."""
    if facts.viewer is None:
        return oid
    known = exp.cast(
        _call("string_split", exp.Literal.string(facts.viewer.known_oids()), exp.Literal.string(",")),
        "UINTEGER[]",
        dialect="duckdb",
    )
    return _call("_seen", oid, known)


def _privilege(name: str, arguments: list[exp.Expr], facts: SessionFacts) -> exp.Expr:
    """``[role,] object, [column,] privilege``: without a role, whether the session's own has it."""
    privilege = arguments[-1]
    if name == "pg_has_role":
        roles = arguments[:-1]
        own = roles[0] if len(roles) == 2 else exp.Literal.string(facts.role)
        return _call("_has_role", _role(own, facts), _role(roles[-1], facts), _call("upper", privilege))
    check_words(privilege)
    given = arguments[:-2] if name == "has_column_privilege" else arguments[:-1]
    role = given[0] if len(given) == 2 else exp.Literal.string(facts.role)
    kind = kind_of_function(name)
    return _call(f"_has_{kind}", _role(role, facts), _object(given[-1], kind, facts), privilege)


def _role(node: exp.Expr, facts: SessionFacts) -> exp.Expr:
    literal = _literal(node)
    if literal is None or literal == "public":
        return _call("_role_in", node)
    oid = facts.snapshot.role_oid(literal)
    if oid == 0:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'role "{literal}" does not exist')
    return _oid(oid)


def _object(node: exp.Expr, kind: str, facts: SessionFacts) -> exp.Expr:
    literal = _literal(node)
    by = class_of(kind)
    if literal is not None:
        return _known_oid(by, literal, facts, seen_only=False)
    return _call(f"_{by}_in", node, *([_numbers(facts.namespaces())] if kind == "table" else []))


_OF_RELATIONS = frozenset({
    "pg_get_viewdef", "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size",
})  # fmt: skip
"""They take a relation's oid, and its name as well."""
_TELLING = frozenset({"pg_get_viewdef", "pg_get_indexdef", "obj_description", "col_description", "format_type"})
"""They tell of the object whose oid they are given."""


_SIZES = _OF_RELATIONS - {"pg_get_viewdef"}


def _of_named_relation(name: str, arguments: list[exp.Expr], facts: SessionFacts) -> exp.Expr | None:
    first = arguments[0]
    if isinstance(first, exp.Literal) and first.is_string:
        relation = _known_oid("regclass", first.name, facts)
    elif facts.viewer is not None:
        relation = seen(first, facts)
    else:
        return None
    found = _call(name, relation, *arguments[1:])
    if name not in _SIZES or facts.viewer is None or not facts.viewer.secured:
        return found
    hidden = [exp.Literal.number(oid) for oid in sorted(facts.viewer.secured)]
    is_hidden = exp.In(this=relation.copy(), expressions=hidden)  # a size tells how many rows there are
    return exp.Case(ifs=[exp.If(this=is_hidden, true=exp.null())], default=found)


def _current_setting(arguments: list[exp.Expr], facts: SessionFacts) -> exp.Expr:
    name = _literal(arguments[0]) if arguments else None
    missing_ok = len(arguments) > 1 and isinstance(arguments[1], exp.Boolean) and bool(arguments[1].this)
    if name is not None:
        value = facts.setting(name)
        if value is None and not missing_ok:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'unrecognized configuration parameter "{name}"')
        return _text(value)
    facts.volatile = True
    known = {**DEFAULTS, **facts.settings}
    branches = [exp.If(this=exp.Literal.string(key), true=exp.Literal.string(value)) for key, value in known.items()]
    return exp.Case(this=exp.Lower(this=arguments[0] if arguments else exp.null()), ifs=branches)


def _set_config(arguments: list[exp.Expr], facts: SessionFacts) -> exp.Expr:
    name, value = _literal(arguments[0]), _literal(arguments[1])
    local = arguments[2]
    if name is None or value is None or not isinstance(local, exp.Boolean):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "set_config is supported with constant arguments only",
            hint="Use SET name = value.",
        )
    facts.volatile = True
    facts.sets = (*facts.sets, (name, value, bool(local.this)))
    return _text(value)


def _row_security_active(relation: exp.Expr, facts: SessionFacts) -> exp.Expr:
    literal = _literal(relation)
    number = relation if literal is None else _known_oid("regclass", literal, facts, seen_only=False)
    own = facts.snapshot.authority(facts.role)
    secured = [each.oid for each in facts.snapshot.relations if row_security.concerns(each, own)]
    if not secured:
        return exp.false()
    return exp.Paren(this=exp.In(this=number, expressions=[exp.Literal.number(oid) for oid in secured]))


def _oid(value: int) -> exp.Expr:
    return exp.cast(exp.Literal.number(value), "UINTEGER", dialect="duckdb")


def relation_oid(name: str, facts: SessionFacts, *, seen_only: bool = True) -> int | None:
    """``'schema.name'``, ``'"Name"'`` or ``'name'`` by the search path; with ``seen_only`` None for what the session's
    role does not see."""
    parts = _split(name)
    for schema in facts.schemas(implicit=True) if len(parts) == 1 else (parts[-2],):
        found = _in_schema(schema, parts[-1], facts)
        if found is not None:
            viewer = facts.viewer if seen_only and found >= FIRST_OWN_OID else None
            return None if viewer is not None and found not in viewer.known else found
    return None


def _in_schema(schema: str, name: str, facts: SessionFacts) -> int | None:
    if schema in (PG_CATALOG, INFORMATION_SCHEMA):
        item = static_data.relation(schema, name)
        return item.oid if item else None
    relation = facts.snapshot.relations_by_name.get((facts.database, schema, name))
    return relation.oid if relation else facts.snapshot.index_oids.get((facts.database, schema, name))


def _split(name: str) -> list[str]:
    parts: list[str] = []
    at = 0
    while at <= len(name):
        if name[at : at + 1] == '"':
            end = name.find('"', at + 1)
            end = len(name) if end < 0 else end
            parts.append(name[at + 1 : end])
            at = end + 2
        else:
            end = name.find(".", at)
            end = len(name) if end < 0 else end
            parts.append(name[at:end].strip().lower())
            at = end + 1
    return parts


def own_type_oid(name: str, facts: SessionFacts) -> int | None:
    """Of a type that a user has made, or of the array type of one."""
    parts = _split(name.removesuffix("[]"))
    for schema in facts.search_path if len(parts) == 1 else (parts[-2],):
        enum = facts.snapshot.enums_by_name.get((facts.database, schema, parts[-1]))
        if enum is not None:
            return enum.array_oid if name.endswith("[]") else enum.oid
    return None


def _known_oid(kind: str, name: str, facts: SessionFacts, *, seen_only: bool = True) -> exp.Expr:
    """A constant of a reg* type as its oid; the errors are PostgreSQL's."""
    if name.isdigit():
        return _oid(int(name))
    if name == "-":
        return _oid(0)
    bare = name.removeprefix("pg_catalog.").replace('"', "")
    if kind == "regclass":
        oid = relation_oid(name, facts, seen_only=seen_only)
        if oid is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{name}" does not exist')
    elif kind == "regtype":
        oid = static_data.type_names().get(bare.lower()) or own_type_oid(name, facts)
        if oid is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'type "{name}" does not exist')
    elif kind in ("regproc", "regprocedure"):
        oid = static_data.procedure_names().get(bare.partition("(")[0])
        if oid is None:
            raise SqlError(sqlstates.UNDEFINED_FUNCTION, f'function "{name}" does not exist')
    elif kind == "regnamespace":
        schema = facts.snapshot.schemas_by_name.get((facts.database, bare))
        oid = schema.oid if schema else _SYSTEM_NAMESPACES.get(bare)
        if oid is None:
            raise SqlError(sqlstates.INVALID_SCHEMA_NAME, f'schema "{name}" does not exist')
    elif kind == "_database":
        database = facts.snapshot.databases_by_name.get(name)
        oid = database.oid if database else None
        if oid is None:
            raise SqlError(sqlstates.INVALID_CATALOG_NAME, f'database "{name}" does not exist')
    elif kind == "_server":
        oid = next((store.oid for store in facts.snapshot.stores if store.name == name), None)
        if oid is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'server "{name}" does not exist')
    elif kind == "regrole":
        oid = facts.snapshot.role_oid(bare)
        if oid == 0:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'role "{name}" does not exist')
    else:
        oid = 0
    return _oid(oid)


def replace_reg_cast(kind: str, operand: exp.Expr, facts: SessionFacts, *, as_text: bool) -> exp.Expr:
    """``operand::kind``: an oid to compare with, or with ``as_text`` what a reader sees of it."""
    literal = _literal(operand)
    if literal is not None:
        oid = _known_oid(kind, literal, facts)
        return oid if not as_text or literal.isdigit() else exp.Literal.string(literal)
    if kind in _SHOWN_ONLY:
        return _call(f"_{kind}_out", operand) if as_text and not isinstance(operand, exp.Null) else operand
    if kind not in ("regclass", "regtype", "regproc", "regnamespace", "regrole"):
        return exp.cast(operand, "TEXT", dialect="duckdb") if as_text else operand
    if isinstance(operand, exp.Null):
        return operand
    arguments = [_numbers(facts.namespaces())] if kind == "regclass" else []
    value = _call(f"_{kind}_in", operand, *arguments)
    if kind in ("regclass", "regtype", "regnamespace") and facts.viewer is not None:
        shown = value if isinstance(operand, exp.Parameter) else operand
        number = exp.cast(shown.copy(), "TEXT", dialect="duckdb")
        if not as_text:
            return seen(value, facts)
        return exp.func("coalesce", _call(f"_{kind}_out", seen(shown, facts)), number)
    return _call(f"_{kind}_out", value if isinstance(operand, exp.Parameter) else operand) if as_text else value
