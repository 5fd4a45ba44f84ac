"""Rows that are in memory, as a frame of Spark: it is made where somebody uses it, and the rows are still at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.classic.dataframe import DataFrame

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame as ParentFrame
    from pyspark.sql import SparkSession


ROWS_MAX = 5_000  # what several tasks would save is less than what their start costs (measured)


def frame_of(session: SparkSession, rows: pa.Table) -> ParentFrame:
    """By one task where the rows are few, else by one for each of their pieces."""
    return RowsFrame(session, rows) if 0 < len(rows) <= ROWS_MAX else session.createDataFrame(rows)


class RowsFrame(DataFrame):
    """Of few rows, which are one task's. Spark's own plan of it is made by the first call that needs one: a batch whose
    program has kept a plan needs none."""

    def __init__(self, session: SparkSession, rows: pa.Table) -> None:
        self.rows = rows
        self._made: JavaObject | None = None
        super().__init__(None, session)  # see _jdf

    @property
    def _jdf(self) -> JavaObject:
        if self._made is None:
            made = self._session.createDataFrame(self.rows)
            assert isinstance(made, DataFrame)  # noqa: S101 - there is no other session here
            self._made = made._jdf
        return self._made

    @_jdf.setter
    def _jdf(self, made: JavaObject | None) -> None:
        self._made = made
