"""Records of a directory in the order in which a changelog takes them: files by their time, lines as they stand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import evaluate_rows
from mvserver.streaming.batch.program import build_program
from mvserver.views.finishing import layout_of
from mvserver.views.targets import build_target
from spark_sinks.duckdb.batch_plans import BatchCommit
from spark_sinks.duckdb.writer import Writer
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.files import visible_files
from spark_sinks.file.journal import FileJournal
from spark_sinks.file.source import FileReader

pytestmark = pytest.mark.spark

USERS = RelationShape(
    "r",
    "d.public.users",
    "changelog",
    (ScanColumn("id", parse_type("INTEGER"), True), ScanColumn("n", parse_type("INTEGER"))),
    primary_key=("id",),
)


def test_the_last_line_of_the_last_file_counts(spark: Any, tmp_path: Path) -> None:
    directory, work = tmp_path / "users", tmp_path / "work"
    directory.mkdir()
    # Within a millisecond, which is what Spark knows of a file's time, and against the order of the names.
    for number, name in enumerate(["z.json", "a b%20.json", "m.json"]):
        lines = [{"id": key, "n": number * 100 + at} for at in range(3) for key in (1, 2 + number)]
        path = directory / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(path, ns=(10**18 + number * 1_000, 10**18 + number * 1_000))
    work.mkdir()
    FileJournal(work / "files.journal").append(visible_files(directory, directory.resolve()))
    reader = FileReader(DirectoryFiles(directory), work, None)
    frame = reader.batch(spark, {"seq": 0}, {"seq": 3})
    plan = compile_select(parse_select("SELECT id, n FROM users"), lambda p, at: USERS, default_starting="earliest")
    target = build_target("q", "v", 1, plan)
    database = Database.open(tmp_path / "views.duckdb")
    writer = Writer(database.cursor, translate)
    with writer.transaction():
        writer.create_state(target.state, layout_of(target))
    for shape in (frame, frame.coalesce(1)):
        writer.commit(BatchCommit(None, evaluate_rows(shape, build_program([target], trial=True), reader).merges))
        with database.cursor() as cursor:
            rows = cursor.execute('SELECT * FROM "_views"."v" ORDER BY id').fetchall()
        assert rows == [(1, 202), (2, 2), (3, 102), (4, 202)]
    writer.close()
    database.close()
