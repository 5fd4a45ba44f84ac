"""Bounds of stores of TYPE SNOWFLAKE."""

SNOWFLAKE_TABLES_LISTED_MAX = 10_000  # what SHOW gives at most, without a word of what it leaves out
SNOWFLAKE_PRINT_ROWS = 1_000  # that are fetched at once
SNOWFLAKE_STATEMENT_MAX_S = 1_800  # that a statement may take; then it is canceled
SNOWFLAKE_LOCK_WAIT_MAX_S = 60  # for another transaction; then the commit is tried again
