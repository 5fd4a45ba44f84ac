"""Fixtures that start real services, or make what many tests need; each module says which."""

import os

# Spark's JVMs live for seconds here: what its second compiler makes of hot code costs more than all else they do.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

pytest_plugins = ["services.kafka", "services.postgres", "services.system_catalog"]
