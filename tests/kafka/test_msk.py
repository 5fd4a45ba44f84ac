"""The log-in to Amazon's managed Kafka, as far as it can be tried without that service: what is signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import Credentials

from mvserver.errors import SqlError
from spark_sinks.kafka.jars import CONNECTOR, MSK_IAM
from spark_sinks.kafka.msk import token
from spark_sinks.kafka.options import KafkaOptions

BROKER = "b-1.demo.abc123.c2.kafka.us-east-2.amazonaws.com:9098"
SERVERLESS = "boot-1.c1.kafka-serverless.eu-west-1.amazonaws.com:9098"
ROLE = "arn:aws:iam::123456789012:role/reader"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def signature(secret: str, parameters: dict[str, str], host: str, region: str) -> str:
    """Signature Version 4 of a request in whose query it stands, written down from the published algorithm."""
    day = parameters["X-Amz-Date"][:8]
    scope = f"{day}/{region}/kafka-cluster/aws4_request"
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(parameters[name], safe='-_.~')}" for name in sorted(parameters)
    )
    request = "\n".join(["GET", "/", query, f"host:{host}\n", "host", hashlib.sha256(b"").hexdigest()])
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", parameters["X-Amz-Date"], scope, digest])
    key = f"AWS4{secret}".encode()
    for part in (day, region, "kafka-cluster", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize("session", [None, "FwoGZXIvYXdzE//////////wEaD+token=="])
def test_the_token_is_a_signed_address(session: str | None) -> None:
    made = token("us-east-2", Credentials("AKIDEXAMPLE", SECRET, session))
    assert "=" not in made
    parts = urlsplit(base64.urlsafe_b64decode(made + "=" * (-len(made) % 4)).decode())
    assert (parts.scheme, parts.netloc, parts.path) == ("https", "kafka.us-east-2.amazonaws.com", "/")
    given = dict(parse_qsl(parts.query, strict_parsing=True))
    assert given.pop("User-Agent") == "mvserver"  # is no part of what is signed
    told = given.pop("X-Amz-Signature")
    assert told == signature(SECRET, given, parts.netloc, "us-east-2")
    when = datetime.strptime(given.pop("X-Amz-Date"), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - when).total_seconds()) < 60
    assert given == {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"AKIDEXAMPLE/{when:%Y%m%d}/us-east-2/kafka-cluster/aws4_request",
        "X-Amz-Expires": "900",
        "X-Amz-SignedHeaders": "host",
        **({} if session is None else {"X-Amz-Security-Token": session}),
    }


def test_the_algorithm_written_down_here_gives_the_published_key() -> None:
    """The example of Amazon's documentation of the signing key."""
    key = b"AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    for part in ("20150830", "us-east-1", "iam", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    assert key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


def test_both_clients_are_told_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    options = KafkaOptions.from_properties({"uris": BROKER, "kafka.sasl.hash_function": "AWS_MSK_IAM"})
    assert (options.protocol, options.connectors) == ("SASL_SSL", (CONNECTOR, MSK_IAM))
    settings = options.librdkafka()
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    made, expires = settings["oauth_cb"]("")
    assert abs(expires - datetime.now(UTC).timestamp() - 900) < 60
    assert base64.urlsafe_b64decode(made + "=" * (-len(made) % 4)).startswith(
        b"https://kafka.us-east-2.amazonaws.com/?"
    )
    spark = options.spark()
    assert spark["kafka.sasl.mechanism"] == "AWS_MSK_IAM"
    assert spark["kafka.sasl.jaas.config"] == (
        'software.amazon.msk.auth.iam.IAMLoginModule required awsStsRegion="us-east-2";'
    )
    assert spark["kafka.sasl.client.callback.handler.class"] == "software.amazon.msk.auth.iam.IAMClientCallbackHandler"


def test_a_role_is_taken_on_by_both_clients() -> None:
    options = KafkaOptions.from_properties(
        {
            "uris": SERVERLESS,
            "sasl.mechanism": "AWS_MSK_IAM",
            "kafka.msk.iam_role_arn": ROLE,
            "kafka.msk.aws_region": "eu-west-1",
        }
    )
    assert options.spark()["kafka.sasl.jaas.config"] == (
        'software.amazon.msk.auth.iam.IAMLoginModule required awsStsRegion="eu-west-1" '
        f'awsRoleArn="{ROLE}" awsRoleSessionName="mvserver";'
    )


@pytest.mark.parametrize(
    ("properties", "sqlstate", "message"),
    [
        ({"uris": "kafka.example.org:9098"}, "42501",
         "the server's own credentials are not used for an address that is not the service's"),
        ({"uris": f"{BROKER},kafka.example.org:9098"}, "42501",
         "the server's own credentials are not used for an address that is not the service's"),
        ({"uris": "kafka.us-east-2.amazonaws.com.example.org:9098"}, "42501",
         "the server's own credentials are not used for an address that is not the service's"),
        ({"tls.disabled": True}, "22023", "authentication by AWS_MSK_IAM needs TLS, with a verified server"),
        ({"tls.verify_server_hostname": False}, "22023",
         "authentication by AWS_MSK_IAM needs TLS, with a verified server"),
        ({"kafka.msk.aws_region": "eu-west-1"}, "22023",
         "the store is said to be in region eu-west-1 and in region us-east-2"),
        ({"kafka.msk.aws_region": "home"}, "22023",
         'property "kafka.msk.aws_region" has "home", which is not a region'),
        ({"kafka.msk.iam_role_arn": "reader"}, "22023",
         'property "kafka.msk.iam_role_arn" has "reader", which is no role'),
        ({"sasl.username": "u"}, "22023", "a username is given, but AWS_MSK_IAM has none"),
    ],
)  # fmt: skip
def test_wrong_properties(properties: dict[str, object], sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        KafkaOptions.from_properties({"uris": BROKER, "kafka.sasl.hash_function": "AWS_MSK_IAM", **properties})
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
