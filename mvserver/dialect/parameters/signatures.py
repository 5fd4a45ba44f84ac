"""PostgreSQL's choice among operators and functions of one name, over what is recorded of its catalog.

The rules are those of the chapter "Type Conversion" of PostgreSQL's manual. An argument is an oid: ``oids.UNKNOWN``
for a constant text or a parameter whose type is not known yet. ``tests/dialect/record_signatures.py``
records the types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from mvserver.pgcatalog import static_data
from mvserver.pgcatalog.visibility import FIRST_OWN_OID
from mvserver.types import oids

_ANYELEMENT, _ANYNONARRAY, _ANYENUM = 2283, 2776, 3500
_ANYCOMPATIBLE, _ANYCOMPATIBLEARRAY, _ANYCOMPATIBLENONARRAY = 5077, 5078, 5079
_COMPATIBLE = frozenset({_ANYCOMPATIBLE, _ANYCOMPATIBLEARRAY, _ANYCOMPATIBLENONARRAY})
_ARRAYS = frozenset({oids.ANYARRAY, _ANYCOMPATIBLEARRAY})
_ELEMENTS = frozenset({_ANYELEMENT, _ANYNONARRAY, _ANYENUM, _ANYCOMPATIBLE, _ANYCOMPATIBLENONARRAY})
_POLYMORPHIC = _ARRAYS | _ELEMENTS
_STRINGS = "S"


class AmbiguousError(LookupError):
    """Several fit equally well."""


@dataclass(frozen=True)
class Signature:
    """An operator's or a function's types. The last ``optional`` arguments may be left out, and the last one may be
    repeated where it is ``variadic``."""

    arguments: tuple[int, ...]
    result: int
    optional: int = 0
    variadic: bool = False
    names: tuple[str, ...] = ()  # of the arguments, where they have some


# --- the catalog ------------------------------------------------------------------------------------------------------
@cache
def _categories() -> dict[int, tuple[str, bool]]:
    """Of each type the category, and whether it is the preferred one there."""
    names, rows = static_data.rows_of("pg_type")
    oid, category, preferred = (names.index(name) for name in ("oid", "typcategory", "typispreferred"))
    return {int(row[oid] or 0): (row[category] or "", row[preferred] == "t") for row in rows}


@cache
def _implicit_casts() -> frozenset[tuple[int, int]]:
    names, rows = static_data.rows_of("pg_cast")
    source, target, context = (names.index(name) for name in ("castsource", "casttarget", "castcontext"))
    return frozenset((int(row[source] or 0), int(row[target] or 0)) for row in rows if row[context] == "i")


@cache
def _recorded() -> dict[tuple[str, str], tuple[Signature, ...]]:
    """By kind ("o" for operators, "f" for functions) and name. An operator before its operand has one argument."""
    found: dict[tuple[str, str], list[Signature]] = {}
    for line in resources.files(__package__).joinpath("signatures.tsv").read_text(encoding="utf-8").splitlines():
        kind, name, arguments, result, optional, variadic, names = line.split("\t")
        found.setdefault((kind, name), []).append(
            Signature(
                tuple(map(int, arguments.split())), int(result), int(optional), variadic == "1", tuple(names.split())
            )
        )
    return {key: tuple(signatures) for key, signatures in found.items()}


# --- types ------------------------------------------------------------------------------------------------------------
def category_of(oid: int) -> str:
    if oids.element_of(oid) is not None:
        return "A"
    return _categories().get(oid, ("U", False))[0]


def _is_preferred(oid: int) -> bool:
    return _categories().get(oid, ("", False))[1]


def coerces(source: int, target: int) -> bool:
    """Whether a value is taken for one of another type without a cast being written."""
    if source in (target, oids.UNKNOWN) or target == oids.ANY:
        return True
    if target == _ANYENUM:
        return source >= FIRST_OWN_OID
    if target in _POLYMORPHIC:
        is_array = oids.element_of(source) is not None
        return is_array if target in _ARRAYS else target in (_ANYELEMENT, _ANYCOMPATIBLE) or not is_array
    return (source, target) in _implicit_casts()


def common_type(types: Sequence[int | None]) -> int | None:
    """Of the branches of CASE and the like; text where all are unknown, None where there is none."""
    chosen: int | None = None
    for oid in types:
        if oid is None:
            return None
        if oid == oids.UNKNOWN or oid == chosen:
            continue
        if chosen is None:
            chosen = oid
        elif category_of(oid) != category_of(chosen):
            return None
        elif not _is_preferred(chosen) and coerces(chosen, oid) and not coerces(oid, chosen):
            chosen = oid
    return oids.TEXT if chosen is None else chosen


def _resolved(signature: Signature, given: Sequence[int]) -> Signature | None:
    """With the types that anyelement and its like stand for; None where the arguments do not agree on them."""
    if not _POLYMORPHIC.intersection((*signature.arguments, signature.result)):
        return signature
    elements: dict[bool, list[int]] = {True: [], False: []}
    for declared, oid in zip(signature.arguments, given, strict=True):
        if declared in _POLYMORPHIC and oid != oids.UNKNOWN:
            element = oids.element_of(oid) if declared in _ARRAYS else oid
            if element is None:
                return None
            elements[declared in _COMPATIBLE].append(element)
    if len(set(elements[False])) > 1:
        return None
    exact = elements[False][0] if elements[False] else None
    compatible = common_type(elements[True])

    def actual(declared: int) -> int | None:
        if declared not in _POLYMORPHIC:
            return declared
        element = compatible if declared in _COMPATIBLE else exact
        if element is None:
            return None
        return oids.ARRAY_OF.get(element) if declared in _ARRAYS else element

    arguments, result = [actual(oid) for oid in signature.arguments], actual(signature.result)
    if result is None or any(oid is None for oid in arguments):
        return None
    return replace(signature, arguments=tuple(oid for oid in arguments if oid is not None), result=result)


# --- choices ----------------------------------------------------------------------------------------------------------
def operator(symbol: str, types: Sequence[int]) -> Signature | None:
    """That of the operands' types; None where there is none. Raises AmbiguousError."""
    candidates = [each for each in _recorded().get(("o", symbol), ()) if len(each.arguments) == len(types)]
    if len(types) == 2 and oids.UNKNOWN in types and set(types) != {oids.UNKNOWN}:
        known = next(oid for oid in types if oid != oids.UNKNOWN)
        same = [each for each in candidates if each.arguments == (known, known)]
        if same:
            return same[0]
    return _chosen(candidates, types)


def function(name: str, types: Sequence[int]) -> Signature | None:
    """That of the arguments' types; None where there is none. Raises AmbiguousError."""
    candidates = [
        found for each in _recorded().get(("f", name), ()) if (found := _of_length(each, len(types))) is not None
    ]
    return _chosen(candidates, types)


def named_arguments(name: str) -> Sequence[Signature]:
    """The functions of a name whose arguments have names."""
    return [each for each in _recorded().get(("f", name), ()) if each.names]


def _of_length(signature: Signature, count: int) -> Signature | None:
    declared = signature.arguments
    if signature.variadic and count >= len(declared):
        last = declared[-1]
        item = {_ANYCOMPATIBLEARRAY: _ANYCOMPATIBLE, oids.ANYARRAY: _ANYELEMENT}.get(
            last, oids.element_of(last) or last
        )
        return replace(signature, arguments=(*declared[:-1], *[item] * (count - len(declared) + 1)))
    if len(declared) - signature.optional <= count <= len(declared):
        return replace(signature, arguments=declared[:count])
    return None


def _chosen(candidates: Sequence[Signature], types: Sequence[int]) -> Signature | None:
    exact = [each for each in candidates if each.arguments == tuple(types)]
    if exact:
        return exact[0]
    fitting = [each for each in candidates if _fits(each, types)]
    if len(fitting) > 1:
        fitting = _selected(fitting, types)
    if len(fitting) > 1:
        raise AmbiguousError
    return _resolved(fitting[0], types) if fitting else None


def _fits(signature: Signature, types: Sequence[int]) -> bool:
    if not all(coerces(oid, declared) for oid, declared in zip(types, signature.arguments, strict=True)):
        return False
    known = any(oid != oids.UNKNOWN for oid, declared in zip(types, signature.arguments, strict=True)
                if declared in _POLYMORPHIC)  # fmt: skip
    return not known or _resolved(signature, types) is not None


def _selected(candidates: list[Signature], types: Sequence[int]) -> list[Signature]:
    """The steps by which several that fit become one, as the manual counts them."""
    places = range(len(types))
    left = _most(candidates, lambda each: sum(types[at] == each.arguments[at] for at in places))
    left = _most(left, lambda each: sum(_is_near(types[at], each.arguments[at]) for at in places))
    if len(left) == 1 or oids.UNKNOWN not in types:
        return left
    open_places = [at for at in places if types[at] == oids.UNKNOWN]
    accepted: dict[int, tuple[str, bool]] = {}
    for at in open_places:
        categories = {category_of(each.arguments[at]) for each in left}
        if _STRINGS in categories:
            category = _STRINGS
        elif len(categories) == 1:
            (category,) = categories
        else:
            accepted.clear()
            break
        preferred = any(
            _is_preferred(each.arguments[at]) for each in left if category_of(each.arguments[at]) == category
        )
        accepted[at] = category, preferred
    if accepted:
        kept = [each for each in left if all(_accepts(each.arguments[at], *accepted[at]) for at in open_places)]
        left = kept or left
    known = {oid for oid in types if oid != oids.UNKNOWN}
    if len(left) > 1 and len(known) == 1:
        (same,) = known
        fitting = [each for each in left if _fits(each, [same] * len(types))]
        if len(fitting) == 1:
            return fitting
    return left


def _is_near(given: int, declared: int) -> bool:
    if given == oids.UNKNOWN:
        return False
    return given == declared or (_is_preferred(declared) and category_of(declared) == category_of(given))


def _accepts(declared: int, category: str, preferred: bool) -> bool:
    return category_of(declared) == category and (_is_preferred(declared) or not preferred)


def _most(candidates: list[Signature], count: Callable[[Signature], int]) -> list[Signature]:
    best = max(map(count, candidates))
    return [each for each in candidates if count(each) == best]
