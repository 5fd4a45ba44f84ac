"""Settings of the Superset under test: everything in the folder where it runs, no caches, no workers."""

import os

_HOME = os.environ["SUPERSET_HOME"]
SECRET_KEY = "of a server that lives for one test"
SQLALCHEMY_DATABASE_URI = f"sqlite:///{_HOME}/superset.db"
DATA_DIR = _HOME
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
CACHE_CONFIG = DATA_CACHE_CONFIG = {"CACHE_TYPE": "NullCache"}
FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = {"CACHE_TYPE": "SimpleCache"}
RATELIMIT_ENABLED = False
