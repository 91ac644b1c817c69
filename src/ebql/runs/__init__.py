"""Run folders, metrics and checkpoints. Only this package writes to disk, and every file atomically."""

from ebql.runs.attempts import Attempts, one_line
from ebql.runs.checkpoints import Checkpoint, CheckpointError, CheckpointStore, DamagedCheckpointWarning
from ebql.runs.files import (
    errors_in_one_line,
    output_folder,
    write_bytes,
    write_csv,
    write_json,
    write_text,
)
from ebql.runs.folder import RunFolder, require_kinds
from ebql.runs.locking import exclusive
from ebql.runs.metrics import (
    DamagedLogWarning,
    LostLogError,
    MetricsLog,
    has_step,
    is_timing,
    last_records,
    read_intact,
    read_log,
    read_metrics,
)
from ebql.runs.provenance import peak_memory, provenance, versions
from ebql.runs.resuming import OtherVersionsWarning, noted_versions

__all__ = [
    "Attempts",
    "Checkpoint",
    "CheckpointError",
    "CheckpointStore",
    "DamagedCheckpointWarning",
    "DamagedLogWarning",
    "LostLogError",
    "MetricsLog",
    "OtherVersionsWarning",
    "RunFolder",
    "errors_in_one_line",
    "exclusive",
    "has_step",
    "is_timing",
    "last_records",
    "noted_versions",
    "one_line",
    "output_folder",
    "peak_memory",
    "provenance",
    "read_intact",
    "read_log",
    "read_metrics",
    "require_kinds",
    "versions",
    "write_bytes",
    "write_csv",
    "write_json",
    "write_text",
]
