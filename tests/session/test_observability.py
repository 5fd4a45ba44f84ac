"""Log lines: one each, with the session's number, without secrets, bounded."""

from __future__ import annotations

import io
import logging
import time

import pytest

from mvserver import limits
from mvserver.masking import mask_secrets
from mvserver.observability import loggable_sql, session_id_var, set_up_logging


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("CREATE STORE k WITH ('type' = KAFKA, 'kafka.sasl.password' = 'hush', 'uris' = 'a:1')",
         "CREATE STORE k WITH ('type' = KAFKA, 'kafka.sasl.password' = '***', 'uris' = 'a:1')"),
        ("WITH ('access.key' = 'AKIA', 'aws_secret_key'='it''s')",
         "WITH ('access.key' = '***', 'aws_secret_key'='***')"),
        ("WITH (’client.secret’ = ’hush’, 'x' = 1)", "WITH (’client.secret’ = '***', 'x' = 1)"),
        ("CREATE ROLE a PASSWORD 'hush' SUPERUSER", "CREATE ROLE a PASSWORD '***' SUPERUSER"),
        ("ALTER USER a PASSWORD'hush'", "ALTER USER a PASSWORD'***'"),
        (r"ALTER ROLE a PASSWORD E'hu\'sh' LOGIN", "ALTER ROLE a PASSWORD '***' LOGIN"),
        ("ALTER ROLE a PASSWORD /* to be */ U&'hush'", "ALTER ROLE a PASSWORD /* to be */ '***'"),
        ("ALTER ROLE a PASSWORD $x$hu$$sh$x$ LOGIN", "ALTER ROLE a PASSWORD '***' LOGIN"),
        ("ALTER ROLE a PASSWORD 'hu'\n  'sh' LOGIN", "ALTER ROLE a PASSWORD '***' LOGIN"),
        ("ALTER ROLE a PASSWORD NULL", "ALTER ROLE a PASSWORD NULL"),
        ("SET app.token TO 'hush'", "SET app.token TO '***'"),
        ("'uris' = 'postgresql://anna:hush@host/db'", "'uris' = 'postgresql://anna:***@host/db'"),
        ("'sasl.jaas.config' = 'x required password=\"hush\";'", "'sasl.jaas.config' = '***'"),
        ("'password' = 'unclosed hush", "'password' = '***'"),
        ("SELECT url FROM visits WHERE user_id = 'x'", "SELECT url FROM visits WHERE user_id = 'x'"),
    ],
)  # fmt: skip
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked


def test_long_text_is_cut_and_says_so() -> None:
    bound = limits.LOGGED_TEXT_CHARACTERS_MAX
    shown = loggable_sql("x" * (bound + 7))
    assert shown == "x" * bound + "... (7 more characters)"
    assert loggable_sql("x" * bound) == "x" * bound


def test_one_event_is_one_line_with_the_session() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.level
    handler = set_up_logging("INFO", stream)
    try:
        token = session_id_var.set("17")
        logging.getLogger("mvserver.test").info("two\nlines")
        session_id_var.reset(token)
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            logging.getLogger("mvserver.test").exception("failed")
        logging.getLogger("mvserver.test").debug("not shown")
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    first, second = stream.getvalue().splitlines()
    assert first.endswith("Z INFO mvserver.test session=17 two\\nlines")
    assert "Z ERROR mvserver.test failed trace=" in second
    assert "ZeroDivisionError" in second


def test_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown log level 'LOUD'"):
        set_up_logging("LOUD")


@pytest.mark.parametrize(
    "piece", ["a.", "a", "'", "’", '"', "password ", "a://", "a:", "$$", "'password' = ", "_key", "'a_key"]
)
def test_masking_takes_time_in_proportion_to_the_text(piece: str) -> None:
    """A text made to mislead the patterns must not hold the interpreter."""
    bound = limits.LOGGED_TEXT_CHARACTERS_MAX
    started = time.process_time()
    loggable_sql((piece * bound)[:bound])
    assert time.process_time() - started < 0.5
