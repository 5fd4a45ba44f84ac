"""What a program asks of psqlODBC: ODBC's catalog functions, and rows with parameters. One JSON object on stdout.

Arguments: the driver's library, host, port, database.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import pyodbc


def texts(rows: Iterable[Any]) -> list[list[str]]:
    return [[str(value) for value in row] for row in rows]


driver, host, port, database = sys.argv[1:]
connection = pyodbc.connect(
    f"Driver={driver};Servername={host};Port={port};Database={database};Uid=postgres;Pwd=x;SSLmode=disable",
    autocommit=True,
)
cursor = connection.cursor()
answers: dict[str, Any] = {
    "tables": texts(cursor.tables(schema="public").fetchall()),
    "columns": texts(cursor.columns(table="typed").fetchall()),
    "primary keys": texts(cursor.primaryKeys(table="visits").fetchall()),
    "statistics": texts(cursor.statistics("visits").fetchall()),
    "foreign keys": texts(cursor.foreignKeys(table="visits").fetchall()),
    "types": [str(row[0]) for row in cursor.getTypeInfo().fetchall()],
    "row id": texts(cursor.rowIdColumns("visits").fetchall()),
    "procedures": len(cursor.procedures(procedure="nothing").fetchall()),
    "a row": texts(cursor.execute("select * from typed where id = ?", 1).fetchall()),
    "its columns": [[name, str(kind)] for name, kind, *_ in cursor.description],
    "rows": texts(cursor.execute("select url, visits from visits where visits > ? order by 1", 15).fetchall()),
    "of a document": texts(cursor.execute("select url from visits where url = ?", "./home").fetchall()),
}
print(json.dumps(answers))
