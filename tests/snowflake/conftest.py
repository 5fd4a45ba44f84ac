from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.services.snowflake import SnowflakeEmulator
from tests.snowflake.places import Account


@pytest.fixture
def account(snowflake: SnowflakeEmulator, snowflake_database: Callable[[], str]) -> Account:
    return Account(snowflake, snowflake_database())
