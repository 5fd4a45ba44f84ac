"""One module a measurement; each has ``measure(bench) -> dict`` of plain JSON values."""
