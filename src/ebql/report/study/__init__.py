"""The page of a study: pictures, tables and sentences."""
