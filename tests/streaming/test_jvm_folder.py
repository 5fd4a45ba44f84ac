"""The temporary files of JVMs: those of a live one stay, those of the others go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mvserver.streaming.spark.jvm_folder import make_jvm_folder, remove_jvm_folder


def test_what_a_killed_jvm_has_left_goes_and_what_is_in_use_stays(tmp_path: Path) -> None:
    dead, live = make_jvm_folder(tmp_path), make_jvm_folder(tmp_path)
    assert not dead.exists()  # nobody uses it
    (live / "local" / "blockmgr-1").mkdir()
    others = tmp_path / "warehouse"
    others.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()", f"-Djava.io.tmpdir={live}/tmp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()  # until then it may have no command line yet
        next_one = make_jvm_folder(tmp_path)
        assert live.is_dir()
    finally:
        process.communicate(b"\n")
    last = make_jvm_folder(tmp_path)
    assert not live.exists()
    assert not next_one.exists()
    assert sorted(each.name for each in last.iterdir()) == ["local", "tmp"]
    remove_jvm_folder(last)
    remove_jvm_folder(last)
    assert list(tmp_path.iterdir()) == [others]
