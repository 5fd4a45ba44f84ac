"""The kinds of words of PostgreSQL's text search parser: ``\\dF+`` and ``\\dFp+`` ask for them by a function."""

from __future__ import annotations

_TOKENS = (
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
)


def _list(values: list[str]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


TOKEN_TYPES = (
    f"ts_token_type(parser) AS TABLE SELECT unnest(range(1, {len(_TOKENS) + 1})) AS tokid, "
    f"unnest({_list([alias for alias, _ in _TOKENS])}) AS alias, "
    f"unnest({_list([description for _, description in _TOKENS])}) AS description"
)
"""There is one parser, whichever is named."""
