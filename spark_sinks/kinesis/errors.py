"""A service's errors in words that a user can read: one place for their codes and their words."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.property_values import credentials_refused

_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "KMSThrottlingException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
    }
)
_NOT_KNOWN = frozenset(
    {
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "IncompleteSignatureException",
        "MissingAuthenticationTokenException",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
    }
)
_NOT_ALLOWED = frozenset({"AccessDeniedException", "KMSAccessDeniedException", "OptInRequired"})
_WRONG_VALUE = frozenset({"InvalidArgumentException", "ValidationException", "SerializationException"})
MISSING = "ResourceNotFoundException"
EXPIRED_ITERATOR = "ExpiredIteratorException"


def code_of(error: BaseException) -> str | None:
    """The service's own code; None for what did not come from it."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else None


def throttled(error: BaseException) -> bool:
    """The service wants fewer requests: the same one goes through later."""
    return code_of(error) in _THROTTLED


def unreachable(error: BaseException) -> bool:
    """The service did not answer: the same request may go through later."""
    if isinstance(error, ClientError):
        return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500
    return isinstance(error, BotoCoreError) and not isinstance(error, ParamValidationError)


def could_not_connect(store: str, detail: str | None) -> SqlError:
    return SqlError(sqlstates.CONNECTION_FAILURE, f'could not connect to store "{store}"', detail=_sentence(detail))


def no_entity(store: str, stream: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{stream}" does not exist in store "{store}"')


def entity_exists(store: str, stream: str) -> SqlError:
    return SqlError(sqlstates.DUPLICATE_OBJECT, f'entity "{stream}" already exists in store "{store}"')


def reported(store: str, stream: str | None, error: BaseException) -> SqlError:
    """The error for a request about a store or one of its streams."""
    if isinstance(error, SqlError):
        return error
    code, words = code_of(error), words_of_service(error)
    if isinstance(error, NoCredentialsError):
        words = "The server has no credentials; give 'kinesis.access_key_id' and 'kinesis.secret_access_key'"
    if code in _NOT_KNOWN or isinstance(error, NoCredentialsError):
        return credentials_refused(store, _sentence(words))
    if unreachable(error):
        return could_not_connect(store, words)
    if code == MISSING and stream is not None:
        return no_entity(store, stream)
    state, message = sqlstates.SYSTEM_ERROR, f'store "{store}" reports an error'
    if code in _THROTTLED:
        state, message = (
            sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
            f'store "{store}" allows no more requests at the moment',
        )
    elif code in _NOT_ALLOWED:
        state, message = sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{store}" does not allow the request'
    elif code in _WRONG_VALUE or isinstance(error, ParamValidationError):
        state, message = sqlstates.INVALID_PARAMETER_VALUE, f'store "{store}" refuses the request'
    elif code == "ResourceInUseException":
        state, message = sqlstates.OBJECT_IN_USE, f'store "{store}" is changing what the request is about'
    if stream is not None:
        message += f' for entity "{stream}"'
    return SqlError(state, message, detail=_sentence(words))


def not_understood(store: str, wanted: str) -> SqlError:
    return SqlError(
        sqlstates.SYSTEM_ERROR,
        f'store "{store}" gave an answer that is not understood',
        detail=f"It has no {wanted}.",
        hint="Check the address of the store.",
    )


def words_of_service(error: BaseException) -> str:
    if isinstance(error, ClientError):
        return str(error.response["Error"].get("Message") or code_of(error) or "The service gave no reason")
    return " ".join(str(error).split())


def _sentence(text: str | None) -> str | None:
    if not text:
        return None
    text = text.strip()
    return text if text.endswith((".", "?", "!")) else text + "."
