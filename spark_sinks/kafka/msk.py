"""Authentication by the identity of an AWS account, for Amazon's managed Kafka (MSK).

librdkafka is given a token: an address that is signed for the action kafka-cluster:Connect, by the published algorithm
(Signature Version 4 in the query). Java's client signs by Amazon's own module, from its own jar. Both look for
credentials in the server's environment, so they are used for the service's own brokers alone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.jars import Connector
from spark_sinks.kafka.jaas import jaas
from spark_sinks.kafka.jars import MSK_IAM
from spark_sinks.property_values import printable

if TYPE_CHECKING:
    from botocore.credentials import Credentials

REGION, ROLE = PROPERTIES = ("kafka.msk.aws_region", "kafka.msk.iam_role_arn")
_SESSION = "mvserver"
_SERVICE = "kafka-cluster"
_TOKEN_LIFETIME_S = 900  # the longest that the brokers take
_STS_TIMEOUT_S = 5
_BROKER = re.compile(
    r"[a-z0-9.-]+\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:\d+", re.IGNORECASE
)
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_ROLE = re.compile(r"arn:aws(?:-[a-z-]+)?:iam::\d{12}:role/[\w+=,.@/-]+")


@dataclass(frozen=True)
class MskIam:
    """``role`` is taken on with the server's own credentials, where it is given."""

    region: str
    role: str | None = None
    mechanism: str = "AWS_MSK_IAM"
    connector: Connector | None = MSK_IAM
    from_start: bool = False  # its provider of security knows class loaders

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], uris: Sequence[str], *, verified: bool) -> MskIam:
        if not verified:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                "authentication by AWS_MSK_IAM needs TLS, with a verified server",
                hint="Leave 'tls.disabled' and 'tls.verify_server_hostname' out.",
            )
        regions = {None if (match := _BROKER.fullmatch(uri)) is None else match["region"].lower() for uri in uris}
        if None in regions:
            raise SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE,
                "the server's own credentials are not used for an address that is not the service's",
                hint="The brokers of the service end in kafka.<region>.amazonaws.com.",
            )
        role = printable(properties, ROLE)
        if role is not None and not _ROLE.fullmatch(role):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{ROLE}" has "{role}", which is no role',
                hint="It is as arn:aws:iam::123456789012:role/name.",
            )
        return cls(_region(printable(properties, REGION), {name for name in regions if name is not None}), role)

    def librdkafka(self) -> dict[str, Any]:
        return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": self._token}

    def java(self) -> dict[str, str]:
        options = {"awsStsRegion": self.region}
        if self.role is not None:
            options |= {"awsRoleArn": self.role, "awsRoleSessionName": _SESSION}
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": jaas("software.amazon.msk.auth.iam.IAMLoginModule", options),
            "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        }

    def _token(self, config: str) -> tuple[str, float]:
        """librdkafka asks for it again when four fifths of its time have passed."""
        begun = datetime.now(UTC).timestamp()
        return token(self.region, self._credentials()), begun + _TOKEN_LIFETIME_S

    def _credentials(self) -> Credentials:
        import boto3
        from botocore.config import Config
        from botocore.credentials import Credentials

        session = boto3.Session(region_name=self.region)
        if self.role is not None:
            bounds = Config(
                connect_timeout=_STS_TIMEOUT_S, read_timeout=_STS_TIMEOUT_S, retries={"total_max_attempts": 2}
            )
            service = session.client("sts", config=bounds)
            taken = service.assume_role(RoleArn=self.role, RoleSessionName=_SESSION)["Credentials"]
            return Credentials(taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])
        found = session.get_credentials()
        if found is None:
            raise ValueError("The server's environment has no credentials of AWS")
        frozen = found.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)


def token(region: str, credentials: Credentials) -> str:
    """A request that is never sent, signed for the present moment; the brokers send it to their service."""
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    address = f"https://kafka.{region}.amazonaws.com/"
    request = AWSRequest("GET", address, params={"Action": "kafka-cluster:Connect"})
    SigV4QueryAuth(credentials, _SERVICE, region, expires=_TOKEN_LIFETIME_S).add_auth(request)
    signed = f"{request.url}&User-Agent={_SESSION}"
    return base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")


def _region(given: str | None, of_hosts: set[str]) -> str:
    if given is not None and not _REGION.fullmatch(given):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{REGION}" has "{given}", which is not a region',
            hint="It is a name as us-east-2.",
        )
    regions = sorted({*of_hosts, *([given] if given else [])})
    if len(regions) > 1:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"the store is said to be in region {regions[0]} and in region {regions[1]}",
        )
    return regions[0]
