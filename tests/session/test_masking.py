"""The log and DESCRIBE hide the values of the same keys."""

from __future__ import annotations

import pytest

from mvserver import masking

SECRET = [
    *(mark.format(sep=separator) for mark in masking.MARKS for separator in ("", ".", "_", "-")),
    *(f"my{ending}" for ending in masking.ENDINGS),
    "sasl.password", "kafka.sasl.password", "SASL.JAAS.CONFIG", "aws_secret_key", "client.credential.file",
]  # fmt: skip
SHOWN = ["uris", "type", "key.format", "key.type", "key.columns", "topic.partitions", "sasl.username", "keyless"]


@pytest.mark.parametrize("key", SECRET)
def test_a_secret_key_is_hidden_in_logs_and_in_describe(key: str) -> None:
    assert masking.is_secret(key)
    assert masking.masked({key: "hush"}) == ((key, masking.MASK),)
    assert "hush" not in masking.mask_secrets(f"CREATE STORE s WITH ('{key}' = 'hush')")


@pytest.mark.parametrize("key", SHOWN)
def test_any_other_key_is_shown_in_both(key: str) -> None:
    assert masking.masked({key: "plain"}) == ((key, "plain"),)
    assert "plain" in masking.mask_secrets(f"CREATE STORE s WITH ('{key}' = 'plain')")


def test_columns_and_keys_of_documents_may_end_as_secrets_do() -> None:
    for condition in ("user_key = 'a'", "\"x.key\" = 'a'", "d->>'user_key' = 'a'", "d -> 'user_key' = 'a'"):
        text = f"SELECT * FROM v WHERE {condition}"
        assert masking.mask_secrets(text) == text


def test_a_kind_declares_keys_whose_names_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_masker", masking._masker)  # taken back afterwards
    assert not masking.is_secret("account.sas")
    masking.declare(("account.sas",))
    assert masking.masked({"Account.SAS": "hush", "account.sasl": "x"}) == (
        ("Account.SAS", masking.MASK), ("account.sasl", "x"),
    )  # fmt: skip
    assert masking.mask_secrets("WITH ('account.sas' = 'hush', 'account.sasl' = 'x')") == (
        "WITH ('account.sas' = '***', 'account.sasl' = 'x')"
    )
