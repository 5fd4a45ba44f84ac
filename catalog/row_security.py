"""Which row policies are in force for whom, by PostgreSQL's rules.

A relation's owner, superusers and roles with BYPASSRLS see all rows; the owner does not where row security is forced.
All others see the rows that one of the permissive policies and all of the restrictive ones let them see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.authority import Authority
from catalog.model import Policy, Relation


@dataclass(frozen=True)
class InForce:
    """The conditions as they were written. Without a permissive one no row is seen."""

    permissive: tuple[str, ...]
    restrictive: tuple[str, ...]


def concerns(relation: Relation, own: Authority) -> bool:
    """Whether row security decides which rows of the relation the role sees."""
    if not relation.row_security or own.bypasses_row_security:
        return False
    return relation.row_security_forced or not own.owns(relation)


def in_force(relation: Relation, policies: Iterable[Policy], own: Authority) -> InForce | None:
    """Of all ``policies`` those that decide; None where the role sees all rows."""
    if not concerns(relation, own):
        return None
    mine = [each for each in policies if each.relation_oid == relation.oid and not own.oids.isdisjoint(each.roles)]
    return InForce(
        tuple(each.condition for each in mine if not each.restrictive),
        tuple(each.condition for each in mine if each.restrictive),
    )
