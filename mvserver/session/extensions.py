"""buenavista's Extensions on the simple protocol: a text that is a JSON object names one by its ``method``.

Only where extensions are registered, and only for a text that is an object as a whole: a SELECT that happens to end in
a brace stays a SELECT.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from buenavista.core import Extension

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Result, WireSession
from mvserver.session.buenavista import BuenavistaSession, result_of

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class ExtensionCalls:
    def __init__(self, extensions: Sequence[Any], session: WireSession) -> None:
        self._extensions = {extension.type(): extension for extension in extensions}
        self._session = BuenavistaSession(session, owned=False)

    def run(self, text: str) -> Result | None:
        """The extension's answer, or None where the text is SQL."""
        if not self._extensions:
            return None
        payload = _COMMENT.sub("", text).strip().rstrip(";").rstrip()
        if not (payload.startswith("{") and payload.endswith("}")):
            return None
        try:
            request = Extension.check_json(payload)
        except json.JSONDecodeError as error:
            raise SqlError(
                sqlstates.SYNTAX_ERROR, "the call of an extension is not JSON", detail=f"{error}."
            ) from error
        method = request.get("method") if request else None
        extension = self._extensions.get(method)
        if extension is None:
            raise SqlError(
                sqlstates.UNDEFINED_FUNCTION,
                f'extension "{method}" does not exist',
                hint=f"Extensions are: {', '.join(sorted(self._extensions))}.",
            )
        return result_of(extension.apply(request.get("params"), self._session))
