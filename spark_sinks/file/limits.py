"""Limits of stores that are directories."""

from __future__ import annotations

FILE_NAME_BYTES_MAX = 255  # what file systems allow for one name
FILE_RECORD_BYTES_MAX = 16 * 1024 * 1024  # a line that PRINT ENTITY or INSERT INTO ENTITY holds in memory
