r"""The text of a JSON record: what it says that Spark's parser does not.

Spark's parser rounds decimals, takes a number with a point through a double on its way to text, and writes ``?`` for
half a surrogate pair. The conditions here are asked of each record. Where one of them says that the text may hold more
than the parser shows, the text is *marked*, and nothing of it is lost. All loops of the patterns are possessive: each
runs over the text once, and none needs a stack. Together they cost more than the parsing; so one run over the bytes
says before which of them need not be asked (:class:`Oddities`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spark_sinks.decode.columns import text

ODDITIES = "mv_json_oddities"
"""A function of Spark: of a text's bytes, and of how many digits are kept behind the point of a number."""

_STRING_BODY = r'(?:[^"\\]++|\\.)*+'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_HEX = "[0-9a-fA-F]"
_PAIR = rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_CHARACTERS = rf"^(?:[^\\]++|\\[^u]|\\u(?!0000|[dD][89a-fA-F])|{_PAIR})*+$"
_HALF_OF_PAIR = rf"\G((?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|{_PAIR})*+)\\u[dD][89a-fA-F]{_HEX}{{2}}"
_ESCAPED_KEY = rf'\\u{_HEX}{{4}}[^"\\]*+"\s*+:'
_PLAIN_NAME = re.compile("[a-z0-9_]+")
_OTHER_THAN_PLAIN_KEY = r'[^\x00-@\[-\x7f][^"\\]*+"\s*+:'  # with a capital letter, or one that is not of ASCII
_TINY = r"[eE]-0*+[1-9][0-9]{2}|0{300}"


@dataclass(frozen=True)
class Oddities:
    """What the function has found in a text, as an expression. Each condition is true where the text surely is so, and
    is not where that is to be asked of the patterns."""

    found: str

    @property
    def is_one_object(self) -> str:
        return f"{self.found} & 1 = 0"

    @property
    def has_plain_keys(self) -> str:
        """No capital letters, none beyond ASCII, and no escapes with code points anywhere."""
        return f"{self.found} & 2 = 0"

    @property
    def has_short_numbers(self) -> str:
        return f"{self.found} & 4 = 0"


def has_only_characters(utf8: str) -> str:
    r"""Whether each ``\u`` of the text is a character, or a part of one, and none is ``\u0000``."""
    return f"(NOT {_has_escapes(utf8)} OR {utf8} RLIKE {text(_CHARACTERS)})"


def halves_as_nul(utf8: str) -> str:
    r"""The text with ``\u0000`` for each half of a surrogate pair, which the parser would make a ``?`` of."""
    return f"regexp_replace({utf8}, {text(_HALF_OF_PAIR)}, {text('$1' + 2 * chr(92) + 'u0000')})"


def has_tiny_numbers(utf8: str) -> str:
    """Whether a number may be so small that a double of it is zero."""
    return f"{utf8} RLIKE {text(_TINY)}"


def has_other_spelling(utf8: str, names: Collection[str], odd: Oddities | None = None) -> str:
    """Whether a field's name may differ from one of ``names`` in nothing but case. Of names that differ from each other
    in no more, any may be meant."""
    return has_unknown_spelling(
        utf8, names, [name for name in names if sum(other.lower() == name.lower() for other in names) == 1], odd
    )


def has_unknown_spelling(utf8: str, names: Collection[str], known: Collection[str], odd: Oddities | None = None) -> str:
    """Whether a field's name may be one of ``names`` in another case, and is not exactly one of ``known``."""
    folded = {name.lower() for name in names}
    exact = f'(?!(?:{_any_of(known)})")' if known else ""
    pattern = rf'"{exact}(?iu:{_any_of(folded)})"\s*+:|{_ESCAPED_KEY}'
    found = f"{utf8} RLIKE {text(pattern)}"
    if not set(names) <= set(known) or not all(map(_PLAIN_NAME.fullmatch, names)):
        return found
    # A plain name in another case has a letter that is not plain. Most texts have no such key, which is told in a
    # quarter of the time.
    if odd is not None:
        return f"(NOT ({odd.has_plain_keys}) AND {found})"
    return f"(({_has_escapes(utf8)} OR {utf8} RLIKE {text(_OTHER_THAN_PLAIN_KEY)}) AND {found})"


def has_long_numbers(utf8: str, scales: Mapping[str, int], scale_of_items: int | None) -> str:
    """Whether a number may have more digits than the parser keeps, or an exponent; one in quotes too.

    ``scales`` are the digits after the point that are kept, by the name of the field; ``scale_of_items`` those of
    numbers that have no name, in arrays and maps.
    """
    fields = [
        f"(?:{_any_of([name for name, kept in scales.items() if kept == scale])}){_long_value(scale)}"
        for scale in sorted(set(scales.values()))
    ]
    least = min([*scales.values(), *([] if scale_of_items is None else [scale_of_items])])
    anywhere = rf'[\[,:]\s*+(?:"?-?[0-9]++(?:\.[0-9]{{{least + 1}}}|(?:\.[0-9]*+)?+[eE])|"-?[0-9.]*+[^\x00-\x7f])'
    anywhere = f"{utf8} RLIKE {text(anywhere)}"
    if scale_of_items is not None:
        return f"({anywhere})"
    pattern = '"(?:' + "|".join(fields) + ")"
    named = f"{utf8} RLIKE {text(pattern)}"
    # A name may be written with escapes, too.
    return f"({named} OR ({_has_escapes(utf8)} AND {anywhere}))"


def marked(utf8: str) -> str:
    """The text in which each string begins with ``S``, and each number is a string of ``N`` and its digits.

    What was no JSON may be some afterwards: ``{1:2}``.
    """
    strings = f"regexp_replace({utf8}, {text(f'{chr(34)}({_STRING_BODY}){chr(34)}')}, {text(_quoted('S$1'))})"
    numbers = rf'\G((?:[^"\-0-9]++|"{_STRING_BODY}")*+)({_NUMBER})'
    return f"regexp_replace({strings}, {text(numbers)}, {text('$1' + _quoted('N$2'))})"


def unmarked(value: str) -> str:
    """A marked text as it was."""
    numbers = rf'\G((?:[^"]++|"S{_STRING_BODY}")*+)"N([^"]*+)"'
    strings = f'"S({_STRING_BODY})"'
    return f"regexp_replace(regexp_replace({value}, {text(numbers)}, '$1$2'), {text(strings)}, {text(_quoted('$1'))})"


def _has_escapes(utf8: str) -> str:
    return f"contains({utf8}, {text(chr(92) + 'u')})"


def _quoted(value: str) -> str:
    return f'"{value}"'


def _any_of(names: Collection[str]) -> str:
    return "|".join(sorted(map(_in_json, names)))


def _in_json(name: str) -> str:
    """A pattern for the name as it stands between quotes."""
    return re.escape(json.dumps(name, ensure_ascii=False)[1:-1])


def _long_value(scale: int) -> str:
    """What follows a name, up to where it is clear. In quotes the parser takes other digits and marks than JSON's."""
    digits = rf"-?[0-9]*+(?:\.[0-9]{{{scale + 1}}}|(?:\.[0-9]*+)?+[eE])"
    return rf'"\s*+:\s*+(?:{digits}|"(?:-?[0-9]*+\.[0-9]{{{scale + 1}}}|[^"]*?[^-0-9."]))'
