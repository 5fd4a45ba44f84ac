from __future__ import annotations

from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.kafka.options import KafkaOptions

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def refused(properties: dict[str, object], **more: object) -> SqlError:
    with pytest.raises(SqlError) as caught:
        KafkaOptions.from_properties(properties, **more)  # type: ignore[arg-type]
    return caught.value


def test_plain_store_needs_only_uris() -> None:
    options = KafkaOptions.from_properties({"type": "KAFKA", "uris": "a:9092, b.example:9093"})
    assert options.uris == ("a:9092", "b.example:9093")
    assert options.librdkafka() == {
        "bootstrap.servers": "a:9092,b.example:9093",
        "security.protocol": "PLAINTEXT",
    }
    assert options.spark() == {
        "kafka.bootstrap.servers": "a:9092,b.example:9093",
        "kafka.security.protocol": "PLAINTEXT",
    }


@pytest.mark.parametrize("uris", ["[::1]:9092", "127.0.0.1:1", "my_host:65535", "x.y-z.example:9092"])
def test_addresses(uris: str) -> None:
    assert KafkaOptions.from_properties({"uris": uris}).uris == (uris,)


@pytest.mark.parametrize(
    "uris", ["host", "host:", ":9092", "host:0", "host:65536", "http://host:9092", "a:1,,b:2", "a b:1"]
)
def test_wrong_addresses(uris: str) -> None:
    error = refused({"uris": uris})
    assert error.sqlstate == "22023"
    assert "is not host:port" in error.message


@pytest.mark.parametrize("uris", [None, "", "  ", 9092])
def test_uris_are_needed(uris: object) -> None:
    error = refused({"uris": uris})
    assert (error.sqlstate, error.message) == ("22023", 'a store of type KAFKA needs the property "uris"')


@pytest.mark.parametrize(
    "key", ["group.id", "plugin.library.paths", "sasl.jaas.config", "ssl.key.location", "kafka.bootstrap.servers"]
)
def test_what_is_not_known_is_refused_by_name(key: str) -> None:
    error = refused({"uris": "a:1", key: "x"})
    assert (error.sqlstate, error.message) == ("22023", f'property "{key}" is not known for a store of type KAFKA')
    assert error.hint is not None
    assert "'kafka.sasl.hash_function'" in error.hint


@pytest.mark.parametrize(
    ("hash_function", "mechanism", "module"),
    [
        ("PLAIN", "PLAIN", "plain.PlainLoginModule"),
        ("sha256", "SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SHA512", "SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_password_goes_over_tls_unless_disabled(hash_function: str, mechanism: str, module: str) -> None:
    properties = {
        "uris": "a:1",
        "kafka.sasl.hash_function": hash_function,
        "kafka.sasl.username": "u",
        "kafka.sasl.password": 'p"\\;',
    }
    options = KafkaOptions.from_properties(properties)
    assert options.protocol == "SASL_SSL"
    assert options.librdkafka()["sasl.mechanism"] == mechanism
    assert options.librdkafka()["sasl.password"] == 'p"\\;'
    assert options.spark()["kafka.sasl.jaas.config"] == (
        f'org.apache.kafka.common.security.{module} required username="u" password="p\\"\\\\;";'
    )
    assert KafkaOptions.from_properties({**properties, "tls.disabled": True}).protocol == "SASL_PLAINTEXT"


def test_newer_names() -> None:
    options = KafkaOptions.from_properties(
        {
            "uris": "a:1",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": "secret",
            "availability_zone": "us-east-2",
        }
    )
    assert (options.protocol, options.mechanism, options.region) == ("SASL_PLAINTEXT", "SCRAM-SHA-512", "us-east-2")
    assert "secret" not in repr(options)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"kafka.sasl.hash_function": "SHA256", "sasl.mechanism": "PLAIN"},
            'properties "kafka.sasl.hash_function" and "sasl.mechanism" contradict each other',
        ),
        (
            {"security.protocol": "SSL", "tls.disabled": "true"},
            'properties "security.protocol" and "tls.disabled" contradict each other',
        ),
        (
            {"security.protocol": "SSL", "sasl.mechanism": "PLAIN"},
            'properties "security.protocol" and "sasl.mechanism" contradict each other',
        ),
        (
            {"security.protocol": "SASL_SSL"},
            'property "security.protocol" is SASL_SSL, which needs the property "sasl.mechanism"',
        ),
        ({"sasl.mechanism": "PLAIN"}, 'authentication by PLAIN needs the property "kafka.sasl.username"'),
        ({"sasl.password": "x"}, "a password is given, but no way of authentication"),
        ({"kafka.sasl.hash_function": "MD5"}, 'property "kafka.sasl.hash_function" cannot be "MD5"'),
        ({"tls.disabled": "maybe"}, 'property "tls.disabled" cannot be "maybe"'),
        (
            {"sasl.mechanism": "PLAIN", "sasl.username": "u\nv", "sasl.password": "x"},
            "the username of a store must be text without control characters",
        ),
    ],
)
def test_contradictions(properties: dict[str, object], message: str) -> None:
    error = refused({"uris": "a:1", **properties})
    assert (error.sqlstate, error.message) == ("22023", message)


def test_none_is_no_authentication() -> None:
    assert KafkaOptions.from_properties({"uris": "a:1", "kafka.sasl.hash_function": "NONE"}).protocol == "PLAINTEXT"


# --- a certificate of the client's own ------------------------------------------------------------------------------
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
CLIENT_FILES = {"tls.client.cert_file": "me.crt", "tls.client.key_file": "me.key"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "me.crt").write_text(PEM)
    (tmp_path / "me.key").write_text(KEY)
    (tmp_path / "sealed.key").write_text(KEY.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"))
    (tmp_path / "old.key").write_text(KEY.replace("PRIVATE", "RSA PRIVATE"))
    return tmp_path


def test_a_client_shows_its_certificate(folder: Path) -> None:
    options = KafkaOptions.from_properties({"uris": "a:1", **CLIENT_FILES}, certificate_folders=[folder])
    assert options.protocol == "SSL"
    assert (options.librdkafka()["ssl.certificate.pem"], options.librdkafka()["ssl.key.pem"]) == (PEM, KEY)
    spark = options.spark()
    assert spark["kafka.ssl.keystore.type"] == "PEM"
    assert (spark["kafka.ssl.keystore.certificate.chain"], spark["kafka.ssl.keystore.key"]) == (PEM, KEY)
    assert "PRIVATE" not in repr(options)


@pytest.mark.parametrize(
    ("properties", "sqlstate", "message"),
    [
        ({"tls.client.cert_file": "me.crt"}, "22023",
         'property "tls.client.cert_file" needs the property "tls.client.key_file"'),
        ({"tls.client.key_file": "me.key"}, "22023",
         'property "tls.client.key_file" needs the property "tls.client.cert_file"'),
        ({**CLIENT_FILES, "tls.client.key_file": "../me.key"}, "42501",
         'file "../me.key" is not under a configured folder'),
        ({**CLIENT_FILES, "tls.client.key_file": "old.key"}, "F0000",
         'file "old.key" holds no private key in PKCS #8 form'),
        ({**CLIENT_FILES, "tls.client.key_file": "sealed.key"}, "F0000",
         'file "sealed.key" holds no private key in PKCS #8 form'),
        ({**CLIENT_FILES, "tls.client.cert_file": "me.key"}, "F0000",
         'file "me.key" holds no certificate in PEM form'),
        ({**CLIENT_FILES, "tls.disabled": True}, "22023",
         'properties "tls.client.cert_file" and "tls.disabled" contradict each other'),
    ],
)  # fmt: skip
def test_wrong_certificates_of_clients(
    folder: Path, properties: dict[str, object], sqlstate: str, message: str
) -> None:
    error = refused({"uris": "a:1", **properties}, certificate_folders=[folder])
    assert (error.sqlstate, error.message) == (sqlstate, message)


# --- tokens ---------------------------------------------------------------------------------------------------------
TOKENS = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example.org/oauth2/token",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": 'se"cret',
}


def test_tokens_of_a_service(folder: Path) -> None:
    more = {
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1, identityPoolId=pool-1",
        "sasl.oauthbearer.ca_cert_file": "me.crt",
    }
    options = KafkaOptions.from_properties({"uris": "a:1", **TOKENS, **more}, certificate_folders=[folder])
    assert (options.protocol, options.mechanism) == ("SASL_SSL", "OAUTHBEARER")
    assert 'se"cret' not in repr(options)
    assert options.librdkafka() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.oauthbearer.method": "oidc",
        **TOKENS,
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-1",
        "https.ca.pem": PEM,
    }
    spark = options.spark()
    assert spark["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://login.example.org/oauth2/token"
    security = "org.apache.kafka.common.security.oauthbearer"
    assert spark["kafka.sasl.login.callback.handler.class"] == f"{security}.OAuthBearerLoginCallbackHandler"
    pem = PEM.replace("\n", "\\n")
    assert spark["kafka.sasl.jaas.config"] == (
        f'{security}.OAuthBearerLoginModule required clientId="me" clientSecret="se\\"cret" scope="kafka" '
        'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-1" '
        f'ssl.truststore.type="PEM" ssl.truststore.certificates="{pem}";'
    )


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"sasl.oauthbearer.client.id": None},
         'authentication by OAUTHBEARER needs the property "sasl.oauthbearer.client.id"'),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"},
         'property "sasl.oauthbearer.token.endpoint.url" has "file:///etc/passwd", which is no address'),
        ({"sasl.oauthbearer.token.endpoint.url": "https://me:x@host/"},
         'property "sasl.oauthbearer.token.endpoint.url" has "https://me:x@host/", which is no address'),
        ({"sasl.oauthbearer.token.endpoint.url": "http://login.example.org/"},
         'property "sasl.oauthbearer.token.endpoint.url" has an address without TLS'),
        ({"sasl.oauthbearer.extensions": "auth=x"},
         'property "sasl.oauthbearer.extensions" has "auth=x", which is not name=value, or a name twice'),
        ({"sasl.oauthbearer.extensions": "a=1,a=2"},
         'property "sasl.oauthbearer.extensions" has "a=2", which is not name=value, or a name twice'),
        ({"sasl.mechanism": "PLAIN"}, 'authentication by PLAIN needs the property "kafka.sasl.username"'),
        ({"sasl.username": "u"}, "a username is given, but OAUTHBEARER has none"),
        ({"sasl.mechanism": None},
         'property "sasl.oauthbearer.token.endpoint.url" needs authentication by OAUTHBEARER'),
    ],
)  # fmt: skip
def test_wrong_properties_of_tokens(properties: dict[str, object], message: str) -> None:
    error = refused({"uris": "a:1", **TOKENS, **properties})
    assert (error.sqlstate, error.message) == ("22023", message)


# --- Confluent's clusters -------------------------------------------------------------------------------------------
def confluent(**properties: object) -> KafkaOptions:
    given = {"uris": "a:1", **properties}
    return KafkaOptions.from_properties(given, kind="CONFLUENT_KAFKA", always_verified=True)


def test_a_confluent_cluster_is_always_verified() -> None:
    options = confluent(**{"kafka.sasl.hash_function": "PLAIN", "sasl.username": "key", "sasl.password": "secret"})
    assert (options.protocol, options.verify_hostname) == ("SASL_SSL", True)
    assert confluent().protocol == "SSL"
    for given in ({"tls.disabled": True}, {"tls.verify_server_hostname": False}, {"security.protocol": "PLAINTEXT"}):
        with pytest.raises(SqlError) as caught:
            confluent(**given)
        assert (caught.value.sqlstate, caught.value.message) == (
            "22023",
            "a store of type CONFLUENT_KAFKA is reached by TLS, and its brokers' names are verified",
        )
    with pytest.raises(SqlError, match="is not known for a store of type CONFLUENT_KAFKA"):
        confluent(**{"group.id": "x"})


def test_tls_when_asked_for() -> None:
    assert KafkaOptions.from_properties({"uris": "a:1", "tls.disabled": "false"}).protocol == "SSL"
    options = KafkaOptions.from_properties({"uris": "a:1", "tls.verify_server_hostname": "FALSE"})
    assert options.librdkafka()["ssl.endpoint.identification.algorithm"] == "none"
    assert options.spark()["kafka.ssl.endpoint.identification.algorithm"] == ""


def test_certificates_only_from_the_configured_folder(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "ca.pem").write_text(PEM)
    (folder / "empty.pem").write_text("nothing")
    (tmp_path / "outside.pem").write_text(PEM)
    (folder / "link.pem").symlink_to(tmp_path / "outside.pem")
    options = KafkaOptions.from_properties({"uris": "a:1", "tls.ca_cert_file": "ca.pem"}, certificate_folders=[folder])
    assert options.librdkafka()["ssl.ca.pem"] == PEM
    assert options.spark()["kafka.ssl.truststore.certificates"] == PEM
    for name in ("../outside.pem", str(tmp_path / "outside.pem"), "link.pem", "absent.pem", "/etc/passwd"):
        error = refused({"uris": "a:1", "tls.ca_cert_file": name}, certificate_folders=[folder])
        assert (error.sqlstate, error.message) == ("42501", f'file "{name}" is not under a configured folder')
    assert refused({"uris": "a:1", "tls.ca_cert_file": "ca.pem"}).sqlstate == "42501"
    assert refused({"uris": "a:1", "tls.ca_cert_file": "empty.pem"}, certificate_folders=[folder]).sqlstate == "F0000"
    assert refused({"uris": "a:1", "tls.ca_cert_file": "ca.pem", "tls.disabled": True}, certificate_folders=[folder])


@pytest.mark.parametrize(("given", "live"), [({}, True), ({"live_lane": "auto"}, True), ({"live_lane": "OFF"}, False)])
def test_a_store_says_whether_its_topics_may_be_read_live(given: dict[str, str], live: bool) -> None:
    assert KafkaOptions.from_properties({"uris": "localhost:9092", **given}).live_lane is live


def test_other_words_for_the_lane_are_refused() -> None:
    with pytest.raises(SqlError) as caught:
        KafkaOptions.from_properties({"uris": "localhost:9092", "live_lane": "always"})
    assert caught.value.sqlstate == "22023"
