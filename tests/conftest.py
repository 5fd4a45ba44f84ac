"""Fixtures that start real services, or make what many tests need; each module says which."""

import gc
import os
from collections.abc import Iterator

import pytest

from tests import lock_order

# Spark's JVMs live for seconds here: what its second compiler makes of hot code costs more than all else they do.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

# No server makes an archive of Spark's classes beside a test; those of ``LiveServer`` are given one.
os.environ.setdefault("MVSERVER_SPARK_CLASS_ARCHIVES", "")

pytest_plugins = [
    "tests.services.chromium",
    "tests.services.axe",
    "tests.services.kafka",
    "tests.services.kinesis",
    "tests.services.postgres",
    "tests.services.schema_registry",
    "tests.services.snowflake",
    "tests.services.spark",
    "tests.services.system_catalog",
]

LOCKS = lock_order.Watch(lock_order.rules()) if os.environ.get("MVSERVER_LOCKS") == "check" else None
if LOCKS is not None:
    lock_order.install(LOCKS)


@pytest.fixture(autouse=LOCKS is not None)
def locks_in_order() -> Iterator[None]:
    """With ``MVSERVER_LOCKS=check``: a test fails that takes locks against the order of ``docs/locks.md``."""
    yield
    if LOCKS is not None:
        gc.collect()  # an iterator of results that a test has left takes its session's lock when it is collected
        found, LOCKS.violations = LOCKS.violations, set()
        assert not found, "\n".join(sorted(found))


_LONGEST = (  # in the order of what they take
    "serving/test_process_memory",
    "differential/test_views",
    "kinesis/test_views",
    "oracle/test_programs",
    "docs/test_examples",
    "faults/test_crash",
    "faults/test_spark",
    "conformance/test_stores",
    "python_functions/test_kafka",
    "lenses/test_kafka",
    "server/test_changes",
    "server/test_row_policies",
    "iceberg/test_live",
    "postgresql/test_views",
    "postgresql/test_pgbench",
    "server/test_push_changes",
    "server/test_change_kills",
    "nexmark/test_queries",
    "demo/test_whole",
)
_PLACES = {f"tests/{name}.py": place for place, name in enumerate(_LONGEST)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest modules begin first, so that no process works on one of them alone at the end."""
    items.sort(key=lambda item: _PLACES.get(item.nodeid.partition("::")[0], len(_LONGEST)))
