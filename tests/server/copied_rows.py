"""A row of every type in COPY's text form, written as COPY TO writes it, so that both ways can be compared."""

from __future__ import annotations

_SCALARS = {
    "id BIGINT NOT NULL": ("1", "2"),
    "name VARCHAR": ('n\\\\ä"{}', ""),
    "flag BOOLEAN": ("t", "f"),
    "tiny TINYINT": ("-128", "127"),
    "real4 FLOAT": ("1.5", "NaN"),
    "real8 DOUBLE": ("1e+300", "-Infinity"),
    "amount DECIMAL(10, 2)": ("-12.35", "0.00"),
    "day DATE": ("2024-02-29", "0001-01-01"),
    "clock TIME": ("23:59:59.5", "00:00:00"),
    "moment TIMESTAMP": ("2024-01-02 03:04:05.678901", "9999-12-31 00:00:00"),
    "instant TIMESTAMP_LTZ": ("2024-01-02 01:04:05+00", "1969-12-31 23:59:59+00"),
    "bytes VARBINARY": ("\\\\x00ff", "\\\\x"),
    "short VARCHAR(3)": ("abc", " "),
}
_NESTED = {
    "list ARRAY<INTEGER>": ("{1,NULL,3}", "{}"),
    "place STRUCT<x INTEGER, y VARCHAR>": ('{"x":1,"y":"é, \\\\"q\\\\""}', "\\N"),
    "tags MAP<VARCHAR, DOUBLE>": ('{"a":1.5}', "\\N"),
}
BY_FORMAT = {"json": {**_SCALARS, **_NESTED}, "csv": _SCALARS}


def columns(form: str) -> str:
    return ", ".join(BY_FORMAT[form])


def names(form: str) -> str:
    return ", ".join(column.split()[0] for column in BY_FORMAT[form])


def rows(form: str) -> list[str]:
    return ["\t".join(values[at] for values in BY_FORMAT[form].values()) for at in range(2)]
