"""buenavista's Extensions on the simple protocol: a text that is a JSON object names one by its ``method``.

Only where extensions are registered, and only for a text that is an object as a whole: a SELECT that happens to end in
a brace stays a SELECT.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from buenavista.core import Extension

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import ClientSession, Result
from mvserver.session.plugins.buenavista import BuenavistaSession, result_of

_COMMENTS_MAX = 8


class ExtensionCalls:
    def __init__(self, extensions: Sequence[Any], session: ClientSession) -> None:
        self._extensions = {extension.type(): extension for extension in extensions}
        self._session = BuenavistaSession(session, owned=False)

    def run(self, text: str) -> Result | None:
        """The extension's answer, or None where the text is SQL."""
        if not self._extensions:
            return None
        payload = _bare(text)
        if not (payload.startswith("{") and payload.endswith("}")):
            return None
        request = _read(payload)
        method = request.get("method") if request else None
        extension = self._extensions.get(method)
        if extension is None:
            raise SqlError(
                sqlstates.UNDEFINED_FUNCTION,
                f'extension "{method}" does not exist',
                hint=f"Extensions are: {', '.join(sorted(self._extensions))}.",
            )
        return result_of(extension.apply(request.get("params"), self._session))


def _bare(text: str) -> str:
    """Without blanks, the closing semicolon, and a few comments of the kind that tools put before or after."""
    text = text.strip()
    for _ in range(_COMMENTS_MAX):
        if not text.startswith("/*"):
            break
        text = text.partition("*/")[2].lstrip()
    text = text.rstrip(";").rstrip()
    for _ in range(_COMMENTS_MAX):
        if not text.endswith("*/"):
            break
        text = text.rpartition("/*")[0].rstrip().rstrip(";").rstrip()
    return text


def _read(payload: str) -> Any:
    """The object. Comments inside it are buenavista's to remove, in a time that grows with the square of its size."""
    try:
        return json.loads(payload)
    except json.JSONDecodeError as error:
        if "/*" in payload and len(payload) <= limits.COMMENTED_CALL_CHARACTERS_MAX:
            try:
                return Extension.check_json(payload)
            except json.JSONDecodeError:
                pass  # the error of the text as it was written says more
        raise SqlError(sqlstates.SYNTAX_ERROR, "the call of an extension is not JSON", detail=f"{error}.") from error
