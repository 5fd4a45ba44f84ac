"""Continuous queries as frozen plans: what EXPLAIN prints and the streaming room runs."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mvserver.compiler.expressions import ColumnReference, Expression, by_place
from mvserver.compiler.windows import WINDOW_END, Window
from mvserver.sql.types import INTEGER, TIMESTAMP, SqlType


@dataclass(frozen=True)
class ScanColumn:
    """``spelling``: another name that the field of a record may have, at no cost."""

    name: str
    type: SqlType
    not_null: bool = False
    spelling: str | None = None


@dataclass(frozen=True)
class Unnest:
    """A row for each place in the longest of ``arrays``, which are over the columns of the scan and of the unnests
    before it. ``elements`` are the columns that it adds, one for each array, NULL where that is shorter;
    ``ordinality`` names a further one, the number of the place, from 1. Where all arrays are NULL or empty an ``outer``
    one gives a row of NULLs, and any other none."""

    arrays: tuple[Expression, ...]
    elements: tuple[ScanColumn, ...]
    ordinality: str
    outer: bool


class ErrorHandling(enum.Enum):
    """``source.deserialization.error.handling``."""

    TERMINATE = "TERMINATE"
    IGNORE = "IGNORE"
    IGNORE_AND_LOG = "IGNORE_AND_LOG"


@dataclass(frozen=True)
class RecordSchema:
    """What all records of a relation were written by, where they do not say so themselves. ``places`` are those of a
    message in a schema of Protobuf."""

    name: str  # source.message
    kind: str  # AVRO or PROTOBUF
    text: str
    references: tuple[tuple[str, str], ...] = ()
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scan:
    """The scanned relation as this query reads it.

    ``columns`` are all declared columns, in order: they alone decide which records are rejected.
    ``timestamp`` is the event-time column (source property, else the relation's), None for the record's own time.
    ``starting_position`` is ``earliest``, ``latest`` or milliseconds since 1970 here; the handler resolves it to a
    position at CREATE.

    A changelog has a ``primary_key``: of its records the last one of a key counts, and one without a value deletes.
    ``key_format`` is how a record's key carries it, None where records have no key; ``key_only`` are the columns that
    are there alone and not in the value. ``partition_columns`` are in the names of folders. A derived scan may be a
    changelog, too: its primary key are its first columns, which may hold NULLs.
    """

    relation_id: str
    relation: str  # database.schema.name
    columns: tuple[ScanColumn, ...]
    value_format: str  # "json", "csv", "parquet"; "rows" of a derived scan
    timestamp: str | None
    timestamp_format: str  # "sql" or "iso8601"
    starting_position: str
    error_handling: ErrorHandling
    kind: str = "stream"  # or "changelog"
    primary_key: tuple[str, ...] = ()
    key_format: str | None = None  # "primitive", "json"
    key_only: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()
    window: Window | None = None
    watermark_delay_ms: int = 0
    idle_timeout_ms: int | None = None  # None: a partition without records holds the watermark back for ever
    views: tuple[str, ...] = ()  # ids of the views whose definitions led here, the outermost last
    derived: Derived | None = None  # what makes its rows, where no store has them
    unnests: tuple[Unnest, ...] = ()  # each makes several rows of what the one before gives
    metadata: SqlType | None = None  # what rowmetadata() gives of a record
    value_schema: RecordSchema | None = None
    key_schema: RecordSchema | None = None
    value_delimiter: str | None = None  # of the format "delimited"
    value_checked: bool = False  # against the schema that a record was written with
    reading: tuple[tuple[str, str], ...] = ()  # how its entity is read, in its store's own properties

    @property
    def value_columns(self) -> tuple[ScanColumn, ...]:
        """Those that are not in the names of folders."""
        return tuple(column for column in self.columns if column.name not in self.partition_columns)


class Aggregate(enum.Enum):
    COUNT_ROWS = "count_rows"  # COUNT(*)
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    FIRST_VALUE = "first_value"  # by event time
    LAST_VALUE = "last_value"
    PERCENTILE_CONT = "percentile_cont"
    PERCENTILE_DISC = "percentile_disc"
    MODE = "mode"
    STRING_AGG = "string_agg"  # by event time; DISTINCT in the order of the values
    ARRAY_AGG = "array_agg"  # the same, with NULLs
    TOP = "topk"  # the greatest values, descending
    BOTTOM = "bottomk"  # the least values, ascending
    FREQUENT = "most_frequent"  # the values that came most often, the most frequent first; of equals the least
    RARE = "least_frequent"  # the values that came least often
    CARDINALITY = "approx_count_distinct"  # of a sketch's values


PLAIN = frozenset(  # they keep no values, and their partial results merge
    {
        Aggregate.COUNT_ROWS, Aggregate.COUNT, Aggregate.SUM, Aggregate.MIN, Aggregate.MAX, Aggregate.AVG,
        Aggregate.VAR_POP, Aggregate.VAR_SAMP, Aggregate.STDDEV_POP, Aggregate.STDDEV_SAMP, Aggregate.BOOL_AND,
        Aggregate.BOOL_OR,
    }
)  # fmt: skip
TIMED = frozenset({Aggregate.FIRST_VALUE, Aggregate.LAST_VALUE})  # they choose by event time


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of the SELECT list or HAVING; equal calls appear once. ``argument`` is None for COUNT(*), and what
    WITHIN GROUP orders by for the aggregates that have one."""

    function: Aggregate
    argument: Expression | None
    type: SqlType  # of the finished value
    filter: Expression | None = None
    distinct: bool = False
    fraction: float | None = None  # of a percentile, 0 to 1
    descending: bool = False  # WITHIN GROUP (ORDER BY ... DESC)
    separator: str | None = None  # of STRING_AGG
    limit: int | None = None  # of TOPK and its relatives; of ARRAY_AGG, which has none by default


@dataclass(frozen=True)
class Output:
    """A column of the result. For a projection, ``expression`` is over the scan; for an aggregation it is a finishing
    expression over KeyReference and AggregateReference."""

    name: str
    type: SqlType
    expression: Expression


@dataclass(frozen=True)
class Projection:
    """SELECT without GROUP BY: rows are only added (append mode)."""

    scan: Scan
    where: Expression | None
    outputs: tuple[Output, ...]
    retention_ms: int | None = None  # how far behind the watermark rows are kept; None: for ever


@dataclass(frozen=True)
class Aggregation:
    """SELECT with GROUP BY (keys may be empty: one row): rows are replaced by key (upsert mode).

    ``having`` and the outputs are finishing expressions; the binder refuses what the finishing list cannot do.
    With ``grouping_sets``, each a set of indexes of keys, a record counts in one group of each; the keys outside a set
    are NULL in its groups, and KeyReference(len(keys)) is the number of the set, an INTEGER.

    The last ``further`` of the keys are functions of the others, which outputs need.

    A ``forgetting`` one has a SESSION window whose bounds are no keys of its own: a group begins anew when nothing has
    come for the gap, and is shown until then.
    """

    scan: Scan
    where: Expression | None
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    outputs: tuple[Output, ...]
    having: Expression | None
    emit_final: bool = False  # windows are shown once, when they are closed
    grace_ms: int = 0  # how long after its end a window still takes records
    retention_ms: int | None = None  # how far behind the watermark rows are kept; None: for ever
    grouping_sets: tuple[tuple[int, ...], ...] = ()
    forgetting: bool = False
    further: int = 0


ContinuousPlan = Projection | Aggregation


# --- rows that no store has ----------------------------------------------------------------------------------------
class JoinKind(enum.Enum):
    INNER = "INNER"
    LEFT = "LEFT"
    FULL = "FULL"


@dataclass(frozen=True)
class JoinSide:
    """One input of a join. ``keys`` are compared, ``outputs`` become columns of the joined rows under their names."""

    scan: Scan
    where: Expression | None
    keys: tuple[Expression, ...]
    outputs: tuple[Output, ...]

    @property
    def plan(self) -> Projection:
        """What is evaluated of each record: the keys first, then the columns."""
        keys = tuple(Output(f"key {i}", key.type, key) for i, key in enumerate(self.keys))
        return Projection(self.scan, self.where, (*keys, *self.outputs))


@dataclass(frozen=True)
class _Join:
    """``residual`` is over the columns of the joined rows and decides what matches; only an outer join has one here,
    since for an inner join it is a condition on the joined rows."""

    kind: JoinKind
    left: JoinSide
    right: JoinSide
    residual: Expression | None

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        return self.left, self.right

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (*self.left.outputs, *self.right.outputs)

    def with_sides(self, sides: Sequence[JoinSide]) -> Self:
        left, right = sides
        return replace(self, left=left, right=right)

    def numbered(self, condition: Expression) -> Expression:
        """A condition over the joined rows as one that DuckDB evaluates: columns by their place."""
        return by_place(condition, (output.name for output in self.outputs))


@dataclass(frozen=True)
class IntervalJoin(_Join):
    """Stream with stream: rows of equal keys whose event times are at most ``within_us`` apart."""

    within_us: int


@dataclass(frozen=True)
class TemporalJoin(_Join):
    """Stream with changelog: each row of the stream, and the version of its key that was valid at its event time. Where
    not the primary key is compared (not ``by_key``), each row of the changelog that had its key at that time."""

    by_key: bool


@dataclass(frozen=True)
class GroupJoin(TemporalJoin):
    """Stream with groups: each row of the stream, and its group as it was at its event time. The right side is what the
    records of the groups' source give to them (``contributions``); their keys are compared, and their outputs are
    columns of the joined rows."""

    groups: Aggregation

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (*self.left.outputs, *self.groups.outputs)


@dataclass(frozen=True)
class ChangelogJoin(_Join):
    """Changelog with changelog: the current rows of both. Its rows are a changelog, told apart by the columns ``key``
    of the joined rows."""

    key: tuple[ScanColumn, ...]


@dataclass(frozen=True)
class UnionAll:
    """The rows of all sides, which have no keys and the same columns."""

    sides: tuple[JoinSide, ...]
    residual: Expression | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.sides[0].outputs

    def with_sides(self, sides: Sequence[JoinSide]) -> UnionAll:
        return replace(self, sides=tuple(sides))


@dataclass(frozen=True)
class GroupsSide:
    """The one input of groups."""

    plan: Aggregation

    @property
    def scan(self) -> Scan:
        return self.plan.scan


@dataclass(frozen=True)
class Groups:
    """The rows of a query that aggregates, each of which changes with the records of its group."""

    plan: Aggregation
    residual: Expression | None = None

    @property
    def sides(self) -> tuple[GroupsSide]:
        return (GroupsSide(self.plan),)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.plan.outputs

    @property
    def key(self) -> tuple[ScanColumn, ...]:
        """What tells its rows apart, whether the query selects it or not."""
        types = [*(key.type for key in self.plan.keys), *([INTEGER] if self.plan.grouping_sets else [])]
        return tuple(ScanColumn(f"key {i}", type_) for i, type_ in enumerate(types))

    @property
    def window_end(self) -> int | None:
        """The key that is the end of the group's window, from which it has its event time; None: it has none."""
        window = self.plan.scan.window
        if window is None or self.plan.forgetting:
            return None
        return next(i for i, k in enumerate(self.plan.keys) if k == ColumnReference(TIMESTAMP, WINDOW_END))


Derived = IntervalJoin | TemporalJoin | ChangelogJoin | UnionAll | Groups


def record_expressions(plan: ContinuousPlan) -> Iterator[Expression]:
    """All that is evaluated for each record of the scan: the condition, and keys and arguments or outputs."""
    if plan.where is not None:
        yield plan.where
    if isinstance(plan, Projection):
        yield from (output.expression for output in plan.outputs)
        return
    yield from plan.keys
    for call in plan.aggregates:
        yield from (each for each in (call.argument, call.filter) if each is not None)
