"""Bounds of stores of TYPE ICEBERG."""

ICEBERG_KEYS_LISTED_MAX = 200  # of a column, in the condition by which files are found: above, a range stands for them
ICEBERG_METADATA_VERSIONS_MAX = 100  # files of a table's metadata that are kept
