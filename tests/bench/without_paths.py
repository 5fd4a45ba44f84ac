"""``mvserver`` without some of the ways to answer a SELECT, to measure what each of them earns.

python -m tests.bench.without_paths GatheredPath,FewRowsPath serve ...
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mvserver import cli
from mvserver.session.reads import pulls
from mvserver.session.reads.read_paths import ReadPath, read_paths
from mvserver.session.reads.snapshots import Snapshots
from mvserver.session.state import SessionState


def leave_out(names: Sequence[str]) -> None:
    """For all sessions that are opened after that."""

    def others(state: SessionState, snapshots: Snapshots) -> tuple[ReadPath, ...]:
        paths = read_paths(state, snapshots)
        if unknown := set(names) - {type(path).__name__ for path in paths}:
            raise ValueError(f"no read paths: {sorted(unknown)}")
        return tuple(path for path in paths if type(path).__name__ not in names)

    pulls.read_paths = others  # type: ignore[attr-defined]


if __name__ == "__main__":
    leave_out(sys.argv[1].split(","))
    del sys.argv[1]
    sys.exit(cli.main())
