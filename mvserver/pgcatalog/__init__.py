"""Our own pg_catalog and information_schema: what PostgreSQL's clients ask a server about itself."""

from mvserver.pgcatalog.version import SERVER_VERSION, SERVER_VERSION_NUM, VERSION_TEXT

__all__ = ["SERVER_VERSION", "SERVER_VERSION_NUM", "VERSION_TEXT"]
