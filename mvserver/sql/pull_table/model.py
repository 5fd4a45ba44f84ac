"""The shape of the table of what pull queries may call: the forms of a call, its meaning, and its lowering."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.worked_examples import Example

MANY = 1_000_000


@dataclass(frozen=True)
class PullFunction:
    """A function of PostgreSQL's that pull queries have.

    ``takes`` is how many arguments it may have: ``2``, ``1-3`` or ``1+``. ``kind`` is scalar, aggregate, ordered (an
    aggregate that needs WITHIN GROUP), window (needs OVER) or rows. It is lowered in one of three ways. ``macro``
    is the text of a DuckDB macro of its name, ``duckdb`` the name that DuckDB has for it. Where neither is said, the
    function of DuckDB or the macro of ``pgcatalog`` has the same name, or a pass of ``dialect`` rewrites the call.
    """

    name: str
    takes: str
    forms: tuple[str, ...]  # its arguments' types and its result's, as they are shown
    meaning: str  # one line
    examples: tuple[Example, ...] = ()  # none where the answer is the session's or the server's own
    kind: str = "scalar"
    duckdb: str = ""
    macro: str = ""

    @property
    def least(self) -> int:
        return int(self.takes.rstrip("+").partition("-")[0])

    @property
    def most(self) -> int:
        least, _, most = self.takes.partition("-")
        return MANY if self.takes.endswith("+") else int(most or least)

    def accepts(self, arguments: int) -> bool:
        return self.least <= arguments <= self.most

    @property
    def shown(self) -> bool:
        """Whether it is for users; the others are for catalog queries of clients."""
        return not self.name.startswith("_")


def function(
    name: str,
    takes: str,
    forms: str,
    meaning: str,
    *examples: Example,
    kind: str = "scalar",
    duckdb: str = "",
    macro: str = "",
) -> PullFunction:
    """``forms`` are separated by semicolons."""
    return PullFunction(name, takes, tuple(forms.split("; ")), meaning, examples, kind, duckdb, macro)


def example(sql: str, expected: str | None) -> Example:
    return Example(sql, expected)
