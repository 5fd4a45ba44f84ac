"""has_table_privilege and its kin, and what keeps functions that take an oid from telling of what is hidden.

Who may what is in two tables beside the catalog's: ``_grants`` (object, grantee, privilege) and ``_powers`` (a role
and what it is a member of). So the functions take any role and object, columns of a query too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from catalog import acl
from catalog.acl import ALL, PUBLIC, ObjectKind, Privilege
from catalog.authority import kind_of
from catalog.privileges import Thing
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgcatalog.visibility import FIRST_OWN_OID

GRANTABLE = " WITH GRANT OPTION"

_KINDS = {
    "has_table_privilege": "table",
    "has_any_column_privilege": "table",
    "has_schema_privilege": "schema",
    "has_database_privilege": "database",
    "has_server_privilege": "server",
}
_LOOKUPS = {"table": "_classes", "schema": "_namespaces", "database": "_databases", "server": "_servers"}
_CLASSES = {"table": "regclass", "schema": "regnamespace", "database": "_database", "server": "_server"}
_KNOWN = frozenset({*(each.name for each in Privilege), "TEMP", "RULE", "MAINTAIN"})


# --- the tables -----------------------------------------------------------------------------------------------------
def grants(snapshot: CatalogSnapshot) -> Iterator[dict[str, object]]:
    """An owner may always pass on what the kind of object has, whatever he has taken from himself."""
    things: list[Thing] = [*snapshot.databases, *snapshot.schemas, *snapshot.stores, *snapshot.relations]
    for thing in things:
        owner = snapshot.role_oid(thing.owner)
        kind = kind_of(thing)
        for item in thing.acl if thing.acl is not None else acl.default(kind, owner):
            for privilege in item.privileges:
                yield {"object": thing.oid, "grantee": item.grantee, "privilege": privilege.name}
            for privilege in item.grantable:
                yield {"object": thing.oid, "grantee": item.grantee, "privilege": privilege.name + GRANTABLE}
        for privilege in ALL[kind]:
            yield {"object": thing.oid, "grantee": owner, "privilege": privilege.name + GRANTABLE}


def powers(snapshot: CatalogSnapshot) -> Iterator[dict[str, object]]:
    yield {"member": PUBLIC, "role": PUBLIC}
    for role in snapshot.roles:
        for oid in snapshot.authority(role.name).oids:
            yield {"member": role.oid, "role": oid}


# --- DuckDB's side --------------------------------------------------------------------------------------------------
LOOKUPS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE VIEW {system}.cat." + text
    for text in (
        "_databases AS SELECT oid AS _k, datname AS _v FROM {system}.cat.pg_database",
        "_servers AS SELECT oid AS _k, srvname AS _v FROM {system}.cat.pg_foreign_server",
        "_supers AS SELECT oid AS _sk FROM {system}.cat.pg_authid WHERE rolsuper",
        "_held AS SELECT p.member AS _hu, g.object AS _ho, replace(g.privilege, 'TEMPORARY', 'TEMP') AS _hp "
        "FROM {system}.cat._grants g JOIN {system}.cat._powers p ON p.role = g.grantee",
        "_members AS SELECT member AS _mu, role AS _mr FROM {system}.cat._powers",
        "_admins AS SELECT member AS _au, roleid AS _ar FROM {system}.cat.pg_auth_members WHERE admin_option",
    )
)


def _has(kind: str) -> str:
    """PUBLIC reads the system's own objects. NULL for an object that is not there."""
    return f"""_has_{kind}(u, o, p) AS CASE
        WHEN NOT EXISTS (SELECT 1 FROM {{system}}.cat.{_LOOKUPS[kind]} WHERE _k = o) THEN NULL
        WHEN EXISTS (SELECT 1 FROM {{system}}.cat._supers WHERE _sk = u) THEN true
        WHEN o < {FIRST_OWN_OID} THEN list_has_any({{system}}.fn._wanted(p), ['SELECT', 'USAGE'])
        ELSE EXISTS (SELECT 1 FROM {{system}}.cat._held
            WHERE _hu = u AND _ho = o AND list_contains({{system}}.fn._wanted(p), _hp)) END"""


def _name_in(kind: str, lookup: str) -> str:
    return (
        f"_{kind}_in(n) AS coalesce(TRY_CAST(CAST(n AS VARCHAR) AS UINTEGER), "
        f"(SELECT min(_k) FROM {{system}}.cat.{lookup} WHERE _v = CAST(n AS VARCHAR)))"
    )


MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        _name_in("_database", "_databases"),
        _name_in("_server", "_servers"),
        """_role_in(n) AS CASE WHEN CAST(n AS VARCHAR) = 'public' THEN CAST(0 AS UINTEGER)
            ELSE coalesce(TRY_CAST(CAST(n AS VARCHAR) AS UINTEGER),
                (SELECT min(_k) FROM {system}.cat._roles WHERE _v = CAST(n AS VARCHAR))) END""",
        """_wanted(p) AS list_transform(string_split(replace(upper(CAST(p AS VARCHAR)), 'TEMPORARY', 'TEMP'), ','),
            lambda w: trim(w))""",
        *(_has(kind) for kind in _LOOKUPS),
        """_has_role(u, r, p) AS CASE WHEN EXISTS (SELECT 1 FROM {system}.cat._supers WHERE _sk = u) THEN true
            WHEN p LIKE '% OPTION' THEN EXISTS (SELECT 1 FROM {system}.cat._admins WHERE _au = u AND _ar = r)
            ELSE EXISTS (SELECT 1 FROM {system}.cat._members WHERE _mu = u AND _mr = r AND r <> 0) END""",
        f"""_seen(o, known) AS CASE WHEN TRY_CAST(o AS UINTEGER) < {FIRST_OWN_OID}
            OR list_contains(known, TRY_CAST(o AS UINTEGER)) THEN o END""",
    )
)


_LETTERS = " ".join(f"WHEN '{each.value}' THEN '{each.name}'" for each in Privilege)
_DEFAULTS = " ".join(
    f"WHEN '{letter}' THEN [{to_public}CONCAT(_acl_name(o), '={acl.letters(ALL[kind])}/', _acl_name(o))]".replace(
        "_acl_name", "{system}.fn._acl_name"
    )
    for letter, kind, to_public in (
        ("r", ObjectKind.RELATION, ""),
        ("n", ObjectKind.SCHEMA, ""),
        ("d", ObjectKind.DATABASE, f"CONCAT('={acl.letters(acl.OF_PUBLIC[ObjectKind.DATABASE])}/', _acl_name(o)), "),
        ("S", ObjectKind.STORE, ""),
    )
)

ACL_MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        """_acl_name(o) AS (SELECT CASE WHEN regexp_full_match(_v, '[A-Za-z0-9_]+') THEN _v
            ELSE '"' || replace(_v, '"', '""') || '"' END FROM {system}.cat._roles WHERE _k = o)""",
        f"acldefault(t, o) AS CASE CAST(t AS VARCHAR) {_DEFAULTS} END",
        """_acl_oid(n) AS CASE WHEN n = '' THEN CAST(0 AS UINTEGER) ELSE (SELECT min(_k) FROM {system}.cat._roles
            WHERE _v = CASE WHEN n LIKE '"%"' THEN replace(n[2:-2], '""', '"') ELSE n END) END""",
    )
)

_ACL_PARTS = ", ".join(f"regexp_extract(x, '^(.*)=([a-zA-Z*]*)/(.*)$', {at}) AS p{at}" for at in (1, 2, 3))
ACLEXPLODE = (
    "aclexplode(a) AS TABLE SELECT {system}.fn._acl_oid(p3) AS grantor, {system}.fn._acl_oid(p1) AS grantee, "
    f"CASE l[1:1] {_LETTERS} END AS privilege_type, l LIKE '%*' AS is_grantable FROM (SELECT p1, p3, "
    f"unnest(regexp_extract_all(p2, '[a-zA-Z][*]?')) AS l FROM (SELECT {_ACL_PARTS} FROM unnest(a) u(x)))"
)


# --- a statement's side ---------------------------------------------------------------------------------------------
def is_privilege_function(name: str) -> bool:
    return name in _KINDS or name in ("has_column_privilege", "pg_has_role")


def kind_of_function(name: str) -> str:
    return _KINDS.get(name, "table")


def class_of(kind: str) -> str:
    """By which reg* type, or macro of that form, a text is the name of such an object."""
    return _CLASSES[kind]


def check_words(node: exp.Expr) -> None:
    """22023 for a constant that names no privilege."""
    if not (isinstance(node, exp.Literal) and node.is_string):
        return
    for part in node.name.split(","):
        word = " ".join(part.split()).upper().removesuffix(GRANTABLE)
        if word not in _KNOWN:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f'unrecognized privilege type: "{" ".join(part.split())}"'
            )
