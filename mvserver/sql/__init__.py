"""SQL text to statements: ``parse(text)`` for all of a text, ``parse_one(text)`` for exactly one."""

from mvserver.sql.parser import parse, parse_one

__all__ = ["parse", "parse_one"]
