"""The metadata of a record: the file that it stands in, and when that was last changed."""

from __future__ import annotations

from pathlib import Path

from spark_sinks.decode.columns import text

METADATA_TYPE = "STRUCT<file VARCHAR, timestamp BIGINT>"
SPARK_TYPE = METADATA_TYPE.replace("VARCHAR", "STRING")  # its fields may be NULL, for Arrow
PATH, CHANGED = "_mv_path", "_mv_changed"
OF_FILE = (  # Spark gives paths as in a URL, but leaves a plus sign as it is
    "CASE WHEN contains(_metadata.file_path, '%') THEN url_decode(replace(_metadata.file_path, '+', '%2B')) "
    f"ELSE _metadata.file_path END AS {PATH}",
    f"_metadata.file_modification_time AS {CHANGED}",
)
"""What is taken of Spark's metadata, once for each record, before names are made of it."""


def name_of(*folders: tuple[Path | None, int]) -> str:
    """The expression for a file's name with the folders below its entity. Spark reads files under ``folders``, each
    with so many folders between it and the name; the first that fits counts."""
    cases = "".join(
        f"WHEN startswith({PATH}, {text(f'file:{folder}/')}) THEN {_behind(folder, between)} "
        for folder, between in folders
        if folder is not None
    )
    return f"CASE {cases}ELSE {PATH} END"


def metadata_of(name: str) -> str:
    return f"cast(named_struct('file', {name}, 'timestamp', unix_millis({CHANGED})) AS {SPARK_TYPE})"


def _behind(folder: Path, between: int) -> str:
    rest = f"substring({PATH}, {len(f'file:{folder}/') + 1})"
    for _ in range(between):
        rest = f"substring({rest}, locate('/', {rest}) + 1)"
    return rest
