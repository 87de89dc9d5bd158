"""The records of the ranking benchmark: what is finished, and where new ones go."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import _common as common


def key(version: str, name: str, method: str, options: dict[str, Any]) -> str:
    return json.dumps([version, name, method, options], sort_keys=True)


def record_key(record: common.Record) -> str:
    return key(record["version"], record["dataset"], record["method"], record["settings"])


@dataclass
class Store:
    """The records of a folder, what they hold by key and seed, and where new ones go."""

    folder: Path
    ranked: dict[str, dict[int, common.Record]] = field(default_factory=dict)
    timed: dict[str, dict[int, common.Record]] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for record in common.read_records(self.folder / "ranking.jsonl"):
            self.ranked.setdefault(record_key(record), {})[record["seed"]] = record
        for record in common.read_records(self.folder / "ranking_costs.jsonl"):
            self._keep_cost(record)

    def add_ranking(self, record: common.Record) -> None:
        common.append_record(self.folder / "ranking.jsonl", record)
        self.ranked.setdefault(record_key(record), {})[record["seed"]] = record

    def add_cost(self, record: common.Record) -> None:
        common.append_record(self.folder / "ranking_costs.jsonl", record)
        self._keep_cost(record)

    def _keep_cost(self, record: common.Record) -> None:
        if record["kind"] == "memory":
            self.memory[record_key(record)] = record["bytes"]
        else:
            self.timed.setdefault(record_key(record), {})[record["seed"]] = record

    def ratios(self, own: str, reference: str) -> dict[int, float]:
        """Times relative to the reference's, by seed, where both ran in turn."""
        found = {
            seed: record["seconds"] / max(other["seconds"], 1e-3)
            for seed, record in self.ranked.get(own, {}).items()
            if record.get("in_turn", True)
            and (other := self.ranked.get(reference, {}).get(seed))
            and other.get("in_turn", True)
        }
        measured = self.timed.get(own, {}).items()
        return found | {s: r["seconds"] / max(r["reference_seconds"], 1e-3) for s, r in measured}
