"""The report page of a study: figures, tables and sentences."""
