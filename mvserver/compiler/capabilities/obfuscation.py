"""Text of which little is shown. Where a part is kept, five stars stand for the rest, so that its length is hidden."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver.compiler.capabilities import bounded
from mvserver.compiler.capabilities.build import INTEGER, TEXT, capability, example, on
from mvserver.compiler.capabilities.model import Capability, Lowered
from mvserver.compiler.capabilities.spark_text import string
from mvserver.sql import types as t
from mvserver.sql.types import SqlType

_STARS = "*****"


def _email(a: Sequence[Lowered], result: SqlType) -> str:
    hidden = bounded.replace_matches(
        str(a[0]), string("(?s)^(.?).*(@[^@]*)$"), string(rf"\1{_STARS}\2"), everywhere=False, most=None
    )
    return f"IF(instr({a[0]}, '@') > 0, {hidden}, concat(left({a[0]}, 1), '{_STARS}'))"


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "anonymize", "a star for each character", [on((TEXT,), t.VARCHAR, "repeat('*', char_length({0}))")],
        [
            example("anonymize('Charles')", "*******", postgres=False),
            example("anonymize('é ')", "**", postgres=False), example("anonymize('')", "", postgres=False),
        ],
        aliases=("mask",),
    ),
    capability(
        "keep_first", "the first n characters and five stars",
        [on((TEXT, INTEGER), t.VARCHAR, f"concat(left({{0}}, {{1}}), '{_STARS}')")],
        [
            example("keep_first('Melissa', 1)", "M*****", postgres=False),
            example("keep_first('Jo', 4)", "Jo*****", postgres=False),
        ],
    ),
    capability(
        "keep_last", "five stars and the last n characters",
        [on((TEXT, INTEGER), t.VARCHAR, f"concat('{_STARS}', right({{0}}, {{1}}))")],
        [
            example("keep_last('Brenda', 4)", "*****enda", postgres=False),
            example("keep_last('', 1)", "*****", postgres=False),
        ],
    ),
    capability(
        "mask_email", "the first character, five stars, and what stands from the last @ on",
        [on((TEXT,), t.VARCHAR, _email)],
        [
            example("mask_email('Bob.Smith@example.org')", "B*****@example.org", postgres=False),
            example("mask_email('@example.org')", "*****@example.org", postgres=False),
            example("mask_email('no address')", "n*****", postgres=False),
        ],
    ),
    capability(
        "initials", "the first character of each word",
        [
            on(
                (TEXT,), t.VARCHAR,
                f"array_join(transform(regexp_extract_all({{0}}, {string(chr(92) + 'S+')}, 0), w -> left(w, 1)), '')",
            )
        ],
        [
            example("initials('Ann Mary  Smith')", "AMS", postgres=False), example("initials('')", "", postgres=False),
        ],
    ),
)  # fmt: skip
