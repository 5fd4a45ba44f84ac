"""Each way of logging in that a broker offers here, with all three clients: administration, the transactional sink,
and Spark's connector."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from pyspark import SparkContext
from pyspark.sql import SparkSession

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.errors import SqlError
from mvserver.spark_jvm import start_jvm, submit_command
from mvserver.streaming.spark.options import SparkOptions, jvm_settings
from mvserver.streaming.spark.pyspark_state import forget_jvm
from mvserver.streaming.spark.session import start_session
from spark_sinks.base import SinkRecords
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.sink import KafkaSink
from spark_sinks.kafka.source import KafkaReader
from tests.kafka.token_service import TokenService
from tests.services.kafka import create_topic
from tests.wire import certificates

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
USER, PASSWORD = "reader", 'p"ass\\word;'
CLIENT, SECRET = "mvserver", 'se"cret'
MODULES = "org.apache.kafka.common.security."
LISTENERS = {
    "PLAIN": "SASL_PLAINTEXT", "PLAINS": "SASL_SSL", "SCRAM": "SASL_SSL", "TLS": "SSL", "MUTUAL": "SSL",
    "OAUTH": "SASL_SSL",
}  # fmt: skip


@dataclass(frozen=True)
class World:
    broker: KafkaBroker
    tokens: TokenService
    folder: Path
    topic: str

    def properties(self, case: str) -> dict[str, object]:
        listener, more = CASES[case]
        given = {"uris": self.broker.address(listener).replace("127.0.0.1", "localhost"), **more}
        if case.startswith("OAUTHBEARER"):
            given |= {"sasl.oauthbearer.token.endpoint.url": self.tokens.url}
        return given

    def options(self, case: str, **more: object) -> KafkaOptions:
        given = {**self.properties(case), **more}
        if case.startswith("CONFLUENT"):
            return KafkaOptions.from_properties(
                given, certificate_folders=[self.folder], kind="CONFLUENT_KAFKA", always_verified=True
            )
        return KafkaOptions.from_properties(given, certificate_folders=[self.folder])


CA = {"tls.ca_cert_file": "broker.crt"}
NAMED = {"kafka.sasl.username": USER, "kafka.sasl.password": PASSWORD}
OWN = {"tls.client.cert_file": "client.crt", "tls.client.key_file": "client.key"}
TOKENS = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.client.id": CLIENT,
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.ca_cert_file": "tokens.crt",
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
}
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "PLAIN": ("PLAIN", {"kafka.sasl.hash_function": "PLAIN", **NAMED, "tls.disabled": True}),
    "SCRAM-SHA-256": ("SCRAM", {"kafka.sasl.hash_function": "SHA256", **NAMED, **CA}),
    "SCRAM-SHA-512": ("SCRAM", {"kafka.sasl.hash_function": "SHA512", **NAMED, **CA}),
    "TLS": ("TLS", CA),
    "mutual TLS": ("MUTUAL", {**CA, **OWN}),
    "OAUTHBEARER": ("OAUTH", {**CA, **TOKENS}),
    "CONFLUENT_KAFKA": ("PLAINS", {"kafka.sasl.hash_function": "PLAIN", **NAMED, **CA}),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("kafka-log-in")
    own = certificates.make(folder, "broker")
    client = certificates.make(folder, "client")
    certificates.make(folder, "stranger")
    tokens = TokenService(certificates.make(folder, "tokens"), {CLIENT: SECRET})
    keys = tokens.write_keys(folder / "keys.json")
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    plain = f'{MODULES}plain.PlainLoginModule required user_{USER}="{escaped}";'
    chain, key = (file.read_text().replace("\n", "\\n") for file in (own.file, own.key))
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": key,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": client.file.read_text().replace("\n", "\\n"),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        **{f"listener.name.{name}.plain.sasl.jaas.config": plain.replace("\\", "\\\\") for name in ("plain", "plains")},
        **{
            f"listener.name.scram.scram-sha-{bits}.sasl.jaas.config": f"{MODULES}scram.ScramLoginModule required;"
            for bits in (256, 512)
        },
        "listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "listener.name.oauth.sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.oauth.sasl.oauthbearer.expected.issuer": "tests",
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": (
            f"{MODULES}oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.oauth.oauthbearer.sasl.jaas.config": (
            f'{MODULES}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        **{f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN" for name in ("plain", "plains")},
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
    }
    broker = KafkaBroker(
        folder / "broker",
        properties=properties,
        listeners=LISTENERS,
        java_options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"],
    )
    try:
        broker.start()
        _make_users(broker)
        yield World(broker, tokens, folder, create_topic(broker, "orders", 2))
    finally:
        broker.stop()
        tokens.close()


def _make_users(broker: KafkaBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    users = [
        UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for user in users:  # one alteration of a user at a time
        for made in admin.alter_user_scram_credentials([user]).values():
            made.result(20)


@pytest.fixture(scope="module")
def log_in_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """In a JVM of its own, which has the connector's jars from its start on, as the server's has."""
    assert not CONNECTOR.missing(None)
    left = SparkContext._gateway
    forget_jvm()
    if left is not None and getattr(left, "proc", None) is not None:
        left.proc.stdin.close()
        left.proc.wait(60)
    folder = tmp_path_factory.mktemp("spark")
    options = SparkOptions("local[2]", "1g", 50, folder, class_path=lambda: CONNECTOR.files(None))
    jvm = start_jvm(submit_command(jvm_settings(options, folder)))
    try:
        session = start_session(options, jvm.environment)
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
    finally:
        jvm.stop()
        forget_jvm()


@pytest.mark.parametrize("case", CASES)
def test_all_clients_log_in(world: World, log_in_spark: SparkSession, case: str) -> None:
    options = world.options(case)
    client = KafkaClient("k", options, timeout_s=20)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    client.create_entity(topic, {"topic.partitions": 1})
    assert topic in [entity.name for entity in client.list_entities()]
    client.insert_record(topic, "inserted", "k", {})
    sink = KafkaSink("k", options, topic, f"q-{uuid.uuid4()}", timeout_s=20)
    sink.open()
    sink.write(SinkRecords([b"k"], [b"written"], [None]), {"n": 1})
    assert sink.committed_position() == {"n": 1}
    sink.close()
    start, end = client.position(topic, "earliest"), client.position(topic, "latest")
    reader = KafkaReader("k", options, topic, timeout_s=20)
    rows = reader.batch(log_in_spark, start, end).selectExpr("cast(value as string) AS v").collect()
    assert sorted(row["v"] for row in rows) == ["inserted", "written"]
    reader.close()
    printed = client.print_entity(topic, from_beginning=True, limit=2, stopped=lambda: False)
    assert sorted(record.value or b"" for record in printed) == [b"inserted", b"written"]
    client.drop_entity(topic, {})
    client.close()


def test_tokens_are_asked_for_with_the_scope(world: World) -> None:
    KafkaClient("k", world.options("OAUTHBEARER"), timeout_s=20).check()
    assert set(world.tokens.requests) == {(CLIENT, "kafka")}


@pytest.mark.parametrize(
    ("case", "wrong", "reason"),
    [
        ("PLAIN", {"kafka.sasl.password": "guess"}, "uthentication failed"),
        ("SCRAM-SHA-512", {"kafka.sasl.password": "guess"}, "uthentication failed"),
        ("TLS", {"tls.ca_cert_file": "stranger.crt"}, "certificate verify failed"),
        ("mutual TLS", {"tls.client.cert_file": "stranger.crt", "tls.client.key_file": "stranger.key"}, "ertificate"),
        ("OAUTHBEARER", {"sasl.oauthbearer.client.secret": "guess"}, "The client is not known"),
        ("OAUTHBEARER", {"sasl.oauthbearer.ca_cert_file": "stranger.crt"}, "ertificate"),
    ],
)
def test_who_is_refused_is_told_why(world: World, case: str, wrong: dict[str, object], reason: str) -> None:
    client = KafkaClient("k", world.options(case, **wrong), timeout_s=3)
    with pytest.raises(SqlError) as caught:
        client.check()
    assert (caught.value.sqlstate, caught.value.message) == ("08006", 'could not connect to store "k"')
    assert reason in (caught.value.detail or "")
    assert "guess" not in (caught.value.detail or "")
