"""Properties that Kafka's own tools take are understood, or refused by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.live_cluster.client_properties import (
    load_options,
    load_settings,
    parse_properties,
    to_settings,
)
from kassay.experiments.sources.live_cluster.property_names import RENAMED, UNCHANGED

MODULES = "org.apache.kafka.common.security"
SCRAM = f"{MODULES}.scram.ScramLoginModule required"


def settings(text: str) -> dict[str, str]:
    return to_settings(parse_properties(text, name="c.properties"), name="c.properties")


def refusal(text: str) -> str:
    with pytest.raises(SourceError) as refused:
        settings(text)
    return str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "client.id=a b",
        "  client.id = a b",
        "client.id: a b",
        "client.id a b",
        "client.id \t=\ta b",
        "# client.id=x\r\n! client.id=y\r\nclient.id=a b\r\n",
        "client.id=z\nclient.id=a b",
        "cli\\\n   ent.id=a\\\n   \\ b",
        "client\\u002eid=\\u0061 b",
        "\n\nclient.id=a\\u0020b\n",
    ],
)
def test_properties_are_read_as_java_reads_them(text: str) -> None:
    assert settings(text) == {"client.id": "a b"}


def test_the_value_may_hold_separators_and_backslashes() -> None:
    assert settings(r"sasl.password=a=b:c\\d\te ") == {"sasl.password": "a=b:c\\d\te "}


def test_a_property_without_a_value_is_empty() -> None:
    assert settings("client.id\n") == {"client.id": ""}


def test_a_login_becomes_a_name_and_a_password() -> None:
    text = (
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={SCRAM} username="a" \\\n   password="x\\\\"; y";\n'
    )
    assert settings(text) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "a",
        "sasl.password": 'x"; y',
    }


@pytest.mark.parametrize(
    ("jaas", "expected"),
    [
        (
            f"{MODULES}.plain.PlainLoginModule required username='u' password=p;",
            {"sasl.username": "u", "sasl.password": "p"},
        ),
        (
            f'{MODULES}.OAuthBearerLoginModule required clientId="i" clientSecret=s scope=r;',
            {
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "r",
                "sasl.oauthbearer.method": "oidc",
            },
        ),
        (
            'com.sun.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p@R";',
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "p@R"},
        ),
    ],
)
def test_each_kind_of_login_is_translated(jaas: str, expected: dict[str, str]) -> None:
    assert settings(f"sasl.jaas.config={jaas}") == expected


@pytest.mark.parametrize(
    "jaas",
    [
        "com.example.OtherLoginModule required user=secret;",
        f"{SCRAM} username=secret",
        f"{SCRAM} username=secret tokenauth=true;",
        f"{SCRAM} username='secret;",
        "secret",
        "",
    ],
)
def test_a_login_that_cannot_be_passed_on_is_refused_without_telling_it(jaas: str) -> None:
    message = refusal(f"\nsasl.jaas.config={jaas}")
    assert message.startswith("c.properties:2: sasl.jaas.config")
    assert "secret" not in message


def test_stores_in_pem_and_pkcs12_are_passed_on() -> None:
    assert settings(
        "ssl.truststore.type=PEM\nssl.truststore.location=/ca\n"
        "ssl.keystore.location=/me.p12\nssl.keystore.password=s\nssl.key.password=k"
    ) == {
        "ssl.ca.location": "/ca",
        "ssl.keystore.location": "/me.p12",
        "ssl.keystore.password": "s",
        "ssl.key.password": "k",
    }
    assert settings("ssl.keystore.type=pem\nssl.keystore.location=/me") == {
        "ssl.key.location": "/me",
        "ssl.certificate.location": "/me",
    }


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("ssl.truststore.location=/ca.jks", "only truststores in PEM can be read: export"),
        ("ssl.truststore.location=/ca.p12", "only truststores in PEM can be read: export"),
        ("ssl.keystore.location=/me.jks", "only keystores in PEM or PKCS12 can be read: convert"),
        ("ssl.keystore.type=BKS\nssl.keystore.location=/me.p12", "only keystores in PEM or PKCS12"),
    ],
)
def test_stores_that_only_java_reads_are_refused_with_advice(text: str, advice: str) -> None:
    line = text.count("\n") + 1
    assert refusal(text).startswith(f"c.properties:{line}: {advice}")


@pytest.mark.parametrize(("value", "passed"), [("", "none"), ("https", "https")])
def test_the_check_of_host_names_is_turned_off_by_an_empty_value(value: str, passed: str) -> None:
    key = "ssl.endpoint.identification.algorithm"
    assert settings(f"{key}={value}") == {key: passed}


def test_what_governs_nothing_that_is_done_is_passed_over() -> None:
    assert settings("bootstrap.servers=a:1\nacks=all\nsession.timeout.ms=45000") == {}


def test_an_unknown_property_is_refused_by_file_and_line() -> None:
    assert refusal("# x\nclient.id=a\\\n b\nssl.protocl=s3cret\n") == (
        "c.properties:4: property 'ssl.protocl' cannot be passed on"
    )


def test_a_cut_escape_is_refused() -> None:
    assert refusal("client.id=\\u00g0") == "c.properties:1: a \\u escape is cut"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_bytes(b"client.id=\xff")
    with pytest.raises(SourceError, match="not text in UTF-8"):
        load_settings(path)


@pytest.mark.parametrize("name", sorted(UNCHANGED | set(RENAMED.values())))
def test_the_client_knows_every_name_that_is_passed_on(name: str) -> None:
    # A name it does not know is refused as such; values are none of this test's business.
    try:
        AdminClient({name: "\x01"})
    except Exception as error:  # noqa: BLE001 - what it raises depends on the name
        assert "No such configuration property" not in str(error)  # noqa: PT017


def test_sparks_own_source_is_passed_properties_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nssl.truststore.location=trust.jks\n")
    assert load_options(path) == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": "trust.jks",
    }
