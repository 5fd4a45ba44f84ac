"""Which directories a FILE store may name, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.file.options import FileOptions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "files" / "clicks").mkdir(parents=True)
    return tmp_path / "files"


def refused(properties: dict[str, object], *roots: Path) -> SqlError:
    with pytest.raises(SqlError) as caught:
        FileOptions.from_properties(properties, roots)
    return caught.value


def test_absolute_relative_and_file_uri_name_the_same_directory(root: Path) -> None:
    for uris in ("clicks", "./clicks", "other/../clicks", str(root / "clicks"), f"file://{root}/clicks"):
        options = FileOptions.from_properties({"uris": uris}, [root])
        assert options.directory == (root / "clicks").resolve()
        assert options.root == root.resolve()


def test_the_root_itself_is_a_store(root: Path) -> None:
    assert FileOptions.from_properties({"uris": "."}, [root]).directory == root.resolve()


def test_a_relative_path_is_looked_for_under_each_root_and_else_belongs_to_the_first(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    (second / "there").mkdir(parents=True)
    assert FileOptions.from_properties({"uris": "there"}, [first, second]).root == second.resolve()
    assert FileOptions.from_properties({"uris": "nowhere"}, [first, second]).directory == first.resolve() / "nowhere"


def test_region_is_accepted_under_its_names(root: Path) -> None:
    assert FileOptions.from_properties({"uris": ".", "access.region": "AWS us-east-1"}, [root]).region == (
        "AWS us-east-1"
    )
    assert FileOptions.from_properties({"uris": ".", "availability_zone": "us-east-1"}, [root]).region == "us-east-1"
    assert FileOptions.from_properties({"type": "FILE", "uris": "."}, [root]).region is None


def test_a_bound_on_the_files_of_a_batch(root: Path) -> None:
    assert FileOptions.from_properties({"uris": "."}, [root]).files_max is None
    assert FileOptions.from_properties({"uris": ".", "max.files.per.batch": 10}, [root]).files_max == 10
    for wrong in (0, -1, "many", True, 1.5):
        error = refused({"uris": ".", "max.files.per.batch": wrong}, root)
        assert (error.sqlstate, error.message) == (
            "22023",
            f'property "max.files.per.batch" must be a number of 1 or more, not "{wrong}"',
        )


def test_unknown_properties_are_refused_by_name(root: Path) -> None:
    error = refused({"uris": ".", "kafka.sasl.username": "x"}, root)
    assert (error.sqlstate, error.message) == (
        "22023",
        'property "kafka.sasl.username" is not known for a store of type FILE',
    )


@pytest.mark.parametrize("uris", ["", "  ", 7, True, "a\0b"])
def test_uris_must_be_text(root: Path, uris: object) -> None:
    error = refused({"uris": uris}, root)
    assert (error.sqlstate, error.message) == ("22023", 'property "uris" must be the path of a directory')


def test_uris_are_needed(root: Path) -> None:
    error = refused({}, root)
    assert (error.sqlstate, error.message) == ("22023", 'a store of type FILE needs the property "uris"')


def test_other_places_are_refused(root: Path) -> None:
    error = refused({"uris": "file://elsewhere/clicks"}, root)
    assert error.message == 'property "uris" names another machine: file://elsewhere/clicks'


def test_a_file_is_not_a_directory(root: Path) -> None:
    (root / "note.txt").write_text("x")
    error = refused({"uris": "note.txt"}, root)
    assert (error.sqlstate, error.message) == ("22023", 'property "uris" does not name a directory: note.txt')


@pytest.mark.parametrize("uris", ["/", "/etc", "..", "../..", "clicks/../../secret"])
def test_what_is_not_under_a_root_is_refused(root: Path, uris: str) -> None:
    error = refused({"uris": uris}, root)
    assert (error.sqlstate, error.message) == ("42501", f"directory {uris} is not under a configured root")
    assert str(root.resolve()) in (error.detail or "")


def test_a_sibling_with_the_roots_name_as_prefix_is_outside(root: Path) -> None:
    sibling = root.parent / "files-of-others"
    sibling.mkdir()
    assert refused({"uris": str(sibling)}, root).sqlstate == "42501"


def test_a_link_that_leads_out_is_refused_and_one_that_stays_inside_is_not(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to(root / "clicks")
    assert refused({"uris": "out"}, root).sqlstate == "42501"
    assert FileOptions.from_properties({"uris": "in"}, [root]).directory == (root / "clicks").resolve()


def test_a_root_may_itself_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(root)
    assert FileOptions.from_properties({"uris": "clicks"}, [tmp_path / "linked"]).root == root.resolve()


def test_without_roots_nothing_is_open() -> None:
    error = refused({"uris": "/tmp"})
    assert (error.sqlstate, error.message) == ("42501", "no directory is open to stores of type FILE")
