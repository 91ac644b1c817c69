"""The only floor that writes to disk: files appear whole or not at all."""

from ebql.runs.files import output_folder, write_bytes, write_csv, write_json, write_text
from ebql.runs.provenance import provenance

__all__ = ["output_folder", "provenance", "write_bytes", "write_csv", "write_json", "write_text"]
