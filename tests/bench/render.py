"""Results as the tables of docs/performance.md and docs/performance-details.md, between their markers.

People write the text around the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENTS = (_DOCS / "performance.md", _DOCS / "performance-details.md")


class MarkerError(Exception):
    """There is no place for a table, or more than one."""


def write(results: dict[str, dict[str, Any]], documents: Sequence[Path] = DOCUMENTS) -> list[str]:
    """Puts each part's table in its place, whichever document has it, and returns the parts written."""
    texts = {document: document.read_text() for document in documents}
    for part, measured in results.items():
        homes = [document for document, text in texts.items() if _begin(part) in text]
        if len(homes) != 1:
            raise MarkerError(f"{len(homes)} documents have {_begin(part)}, not one")
        texts[homes[0]] = replace(texts[homes[0]], part, render(part, measured))
    for document, text in texts.items():
        document.write_text(text)
    return list(results)


def replace(text: str, part: str, table: str) -> str:
    begin, end = _begin(part), f"<!-- /bench:{part} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    replaced, count = pattern.subn(lambda _: f"{begin}\n{table}\n{end}", text)
    if count != 1:
        raise MarkerError(f"the document has {count} places {begin} ... {end}, not one")
    return replaced


def _begin(part: str) -> str:
    return f"<!-- bench:{part} -->"


def render(part: str, measured: dict[str, Any]) -> str:
    return "\n\n".join([_TABLES[part](measured["result"]), _origin(measured)])


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _fields(header: Sequence[str], fields: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    return table(header, [[row.get(name, "") for name in fields] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.4g}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _origin(measured: dict[str, Any]) -> str:
    machine = measured["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    scaled = "" if measured["scale"] == 1 else f" **At scale {measured['scale']:g}: a trial, not a measurement.**"
    size = f"{machine['cores']} cores, {machine['memory_gib']} GiB"
    return (
        f"Measured {machine['measured_at']} on {machine['cpu']}, {size}; {machine['system']}; "
        f"Python {machine['python']}; {machine['java']}; {packages}; "
        f"load average before: {machine['load_average'][0]}.{scaled}"
    )


def _freshness(result: dict[str, Any]) -> str:
    header = ("events/s", "views", "key sets", "with WHERE", "keys", "p50 ms", "p90 ms", "p99 ms", "max ms", "markers")
    fields = ("events_per_s", "views", "key_sets", "with_where", "keys", "p50_ms", "p90_ms", "p99_ms", "max_ms", "n")
    return table(header, [[row[name] for name in fields] for row in result["rows"]])


def _lanes(result: dict[str, Any]) -> str:
    header = ("views", "events/s", "lane", "p50 ms", "p90 ms", "p99 ms", "max ms", "cores", "markers")
    fields = ("views", "events_per_s", "lane", "p50_ms", "p90_ms", "p99_ms", "max_ms", "cores", "n")
    return _fields(header, fields, result["rows"])


def _own_writes(result: dict[str, Any]) -> str:
    header = ("views", "other events/s", "p50 ms", "p90 ms", "p99 ms", "max ms", "reads")
    return _fields(header, ("views", "events_per_s", "p50_ms", "p90_ms", "p99_ms", "max_ms", "n"), result["rows"])


def _stream_joins(result: dict[str, Any]) -> str:
    header = ("join", "events/s a side", "joined rows", "p50 ms", "p90 ms", "p99 ms", "max ms", "markers")
    return _fields(
        header, ("join", "events_per_s", "joined_rows", "p50_ms", "p90_ms", "p99_ms", "max_ms", "n"), result["rows"]
    )


def _changelog_join(result: dict[str, Any]) -> str:
    header = ("changes/s a side", "joined rows", "p50 ms", "p90 ms", "p99 ms", "max ms", "markers")
    fields = ("changes_per_s", "joined_rows", "p50_ms", "p90_ms", "p99_ms", "max_ms", "n")
    return table(header, [[row[name] for name in fields] for row in result["rows"]])


def _changelog_group(result: dict[str, Any]) -> str:
    header = ("source", "aggregates", "backlog, events/s", "CPU µs/event", "live, events/s", "p50 ms", "p99 ms")
    fields = ("source", "aggregates", "events_per_s", "cpu_us_per_event", "live_per_s", "p50_ms", "p99_ms")
    return f"{result['events']:,} events of backlog.\n\n" + _fields(header, fields, result["rows"])


def _backlog(result: dict[str, Any]) -> str:
    header = ("workload", "views", "keys", "events/s", "scan only", "share", "start to first row s", "to all s", "MiB")
    rows = [
        (
            row["workload"],
            row["views"],
            row["keys"],
            row["events_per_s"],
            row["scan_only_per_s"],
            _percent(row["share_of_scan"]),
            row["start_to_first_row_s"],
            row["start_to_all_s"],
            row["rss_mib"],
        )
        for row in result["rows"]
    ]
    return f"{result['events']:,} events.\n\n" + table(header, rows)


def _read_paths(result: dict[str, Any]) -> str:
    header = (
        "path", "query", "clients", "records come in", "with: queries/s", "without", "ratio", "p50 ms with", "without",
        "p99 ms with", "without", "CPU µs a query with", "without",
    )  # fmt: skip
    fields = (
        "path", "query", "clients", "live", "per_s_with", "per_s_without", "ratio", "p50_ms_with", "p50_ms_without",
        "p99_ms_with", "p99_ms_without", "cpu_us_with", "cpu_us_without",
    )  # fmt: skip
    return _fields(header, fields, [{**row, "live": "yes" if row["live"] else "no"} for row in result["rows"]])


def _nexmark(result: dict[str, Any]) -> str:
    scanned = result["scan_only_per_s"]
    header = ("query", "events read", "rows", "events/s", "of scan only", "CPU µs/event")
    rows = [
        (
            row["query"],
            row["events"],
            row["rows"],
            row["events_per_s"],
            _percent(row["events_per_s"] / scanned),
            row["cpu_us_per_event"],
        )
        for row in result["rows"]
    ]
    return f"{result['events']:,} events; scan only of the bids: {scanned:,} events a second.\n\n{table(header, rows)}"


def _view_cost(result: dict[str, Any]) -> str:
    rows = [(row["views"], row["keys"], row["burst_ms"]) for row in result["rows"]]
    text = table(("views", "keys", f"{result['burst_events']:,} events visible after ms"), rows)
    return (
        f"{text}\n\nThe tenth view adds {_percent(result['tenth_share'])} of the batch with one view, the hundredth "
        f"{_percent(result['hundredth_share'])}."
    )


def _tenth_view(result: dict[str, Any]) -> str:
    header = ("the nine views", "p50 ms", "p90 ms", "p99 ms", "max ms", "markers")
    names = {"before": "alone", "while": "while the tenth is filled"}
    rows = [
        (names[row["when"]], row["p50_ms"], row["p90_ms"], row["p99_ms"], row["max_ms"], row["n"])
        for row in result["rows"]
    ]
    return (
        f"{result['records']:,} records, {result['events_per_s']:,} events a second.\n\n{table(header, rows)}\n\n"
        f"The tenth view is filled after {result['fill_s']} s; meanwhile the p99 of the others is "
        f"{result['p99_raised'] * 100:+.1f} %."
    )


def _pull(result: dict[str, Any]) -> str:
    asked = ("query", "protocol", "clients", "system", "per_s", "ratio", "p50_ms", "p99_ms")
    held = ("connections", "active", "kib_each", "per_s", "p50_ms", "p99_ms")
    loaded = ("query", "clients", "per_s", "p50_ms", "p99_ms")
    streamed = result["streamed"]
    return "\n\n".join(
        [
            f"{result['rows_held']:,} rows.",
            _fields(("query", "protocol", "clients", "system", "queries/s", "of PostgreSQL", "p50 ms", "p99 ms"), asked,
                    result["rows"]),
            f"{streamed['rows']:,} rows ({streamed['mib']:,.0f} MiB) streamed: {streamed['rows_per_s']:,} rows a "
            f"second, PostgreSQL {streamed['postgres_rows_per_s']:,} ({streamed['ratio']:.2f} of it); the server's "
            f"memory grew by {streamed['rss_growth_mib']:.0f} MiB.",
            _fields(("connections", "of them asking", "KiB each", "queries/s", "p50 ms", "p99 ms"), held,
                    result["connections"]),
            "While 10,000 events a second come in for ten views:",
            _fields(("query", "clients", "queries/s", "p50 ms", "p99 ms"), loaded, result["under_10000_events_per_s"]),
        ]
    )  # fmt: skip


def _startup(result: dict[str, Any]) -> str:
    header = ("first answer s", "first change s", "runs")
    return table(header, [(result["first_answer_s"], result["first_change_s"], result["runs"])])


def _cpu(result: dict[str, Any]) -> str:
    rows = [(row["events_per_s"] or "idle", row["cores"], row["rss_mib"]) for row in result["rows"]]
    return f"{result['views']} views.\n\n" + table(("events/s", "cores", "MiB"), rows)


def _memory(result: dict[str, Any]) -> str:
    header = ("keys", "memory, bytes a key", "disk, bytes a key", "MiB while filling", "MiB after a restart")
    rows = [
        (
            row["keys"],
            row["rss_bytes_per_key"],
            row["disk_bytes_per_key"],
            row["rss_mib_while_filling"],
            row["rss_mib_after_restart"],
        )
        for row in result["rows"]
    ]
    return table(header, rows)


def _join_memory(result: dict[str, Any]) -> str:
    columns = {
        "hours read": "hours",
        "events a side": "events_a_side",
        "MiB while reading": "rss_mib_while_reading",
        "MiB after a restart": "rss_mib_after_restart",
        "memory, bytes a row": "rss_bytes_per_row",
        "disk MiB": "disk_mib",
    }
    rows = _fields(tuple(columns), tuple(columns.values()), result["rows"])
    return f"{result['rows_of_an_hour']:,} rows are within the hour.\n\n{rows}"


def _watching(result: dict[str, Any]) -> str:
    costs = [
        (row["lane"], row["view"], row["keys"], row["burst_ms"], row["watched_ms"], _percent(row["share"]))
        for row in result["rows"]
    ]
    header = ("lane", "view", "keys", f"{result['burst_events']:,} events visible after ms", "watched", "more")
    reads = _fields(
        ("read", "rows", "present ms", "past ms", "ratio"),
        ("read", "rows", "present_ms", "past_ms", "ratio"),
        result["reads"],
    )
    commits = _fields(
        ("groups", "records", "changes of a commit", "processor time ms of three views", "one of them watched"),
        ("groups", "records", "changes", "cpu_ms", "watched_cpu_ms"),
        result["commits"],
    )
    return "\n\n".join((table(header, costs), commits, reads))


def _pauses(result: dict[str, Any]) -> str:
    header = ("in", "sent", "median ms", "longest ms", f"above {result['promised_ms']:g} ms")
    groups = _fields(header, ("message", "sent", "median_ms", "longest_ms", "over"), result["rows"])
    longest = _fields(("in", "text", "longest pause ms"), ("message", "text", "pause_ms"), result["longest"])
    return f"{groups}\n\n{longest}"


def _web(result: dict[str, Any]) -> str:
    servers = [("front end alone", result), ("whole server", result["whole"])]
    header = (
        "server",
        "readers of one view",
        "epochs/s",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "longest ms",
        "cores",
        "missed",
    )
    fields = ("readers", "epochs_per_s", "p50_ms", "p90_ms", "p99_ms", "max_ms", "cores", "missed")
    rows = [[name, *(found["busy"][field] for field in fields)] for name, found in servers]
    waiting = [
        (name, idle["readers"], idle["readers_mib"], idle["server_mib"], idle["lost"])
        for name, idle in ((name, found["idle"]) for name, found in servers)
    ]
    idle_header = ("server", "readers that only wait", "MiB of them", "MiB before", "connections lost")
    return f"{table(header, rows)}\n\n{table(idle_header, waiting)}"


def _stores(result: dict[str, Any], what: str = "relation") -> str:
    header = (
        "type", what, "records", "records/s", "client alone", "share", "CPU µs a record", "p50 ms", "p90 ms",
        "p99 ms", "max ms", "markers",
    )  # fmt: skip
    fields = (
        "type", what, "records", "records_per_s", "alone_per_s", "share_of_alone", "cpu_us_a_record", "p50_ms",
        "p90_ms", "p99_ms", "max_ms", "n",
    )  # fmt: skip
    rows = [{**row, "share_of_alone": f"{row['share_of_alone']:.1%}".replace("%", " %")} for row in result["rows"]]
    return _fields(header, fields, rows)


_TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "freshness": _freshness,
    "lanes": _lanes,
    "own_writes": _own_writes,
    "stores": _stores,
    "store_formats": lambda result: _stores(result, "format"),
    "stream_joins": _stream_joins,
    "changelog_join": _changelog_join,
    "changelog_group": _changelog_group,
    "tenth_view": _tenth_view,
    "join_memory": _join_memory,
    "backlog": _backlog,
    "nexmark": _nexmark,
    "read_paths": _read_paths,
    "view_cost": _view_cost,
    "watching": _watching,
    "pull": _pull,
    "pauses": _pauses,
    "web": _web,
    "startup": _startup,
    "cpu": _cpu,
    "memory": _memory,
}
