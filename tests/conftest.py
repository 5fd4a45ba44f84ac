"""Fixtures that start real services; each module says which."""

pytest_plugins = ["services.kafka", "services.postgres"]
