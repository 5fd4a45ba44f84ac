"""What was measured, one JSON file a part, with the machine it was measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"


def save(part: str, machine: dict[str, Any], scale: float, result: dict[str, Any], folder: Path = FOLDER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part}.json"
    path.write_text(json.dumps({"machine": machine, "scale": scale, "result": result}, indent=2) + "\n")
    return path


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
