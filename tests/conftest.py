"""Fixtures that start real services, or make what many tests need; each module says which."""

pytest_plugins = ["services.kafka", "services.postgres", "services.system_catalog"]
