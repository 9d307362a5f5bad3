"""Java client properties are translated, or rejected with file and line."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from confluent_kafka.admin import AdminClient

from kassay.experiments.sources.live_cluster.client_properties import (
    IGNORED,
    PROPERTIES,
    Property,
    librdkafka_settings,
    load_librdkafka_settings,
    parse_properties,
)
from kassay.experiments.sources.live_cluster.kafka_python import kafka_python_settings
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.msk_iam import connection_properties
from kassay.reference.model.errors import InputError
from tests.stored_cases import stored_cases

MODULES = "org.apache.kafka.common.security"
SCRAM = f"{MODULES}.scram.ScramLoginModule required"


def settings(text: str) -> dict[str, str]:
    return librdkafka_settings(parse_properties(text, name="c.properties"), name="c.properties")


def error_of(text: str) -> str:
    with pytest.raises(InputError) as raised:
        settings(text)
    return str(raised.value)


@pytest.mark.parametrize("text", stored_cases("notations_of_properties"))
def test_all_notations_of_java_properties_are_parsed(text: str) -> None:
    assert settings(text) == {"client.id": "a b"}


def test_a_scram_login_is_translated_to_user_name_and_password() -> None:
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


@pytest.mark.parametrize(("jaas", "expected"), stored_cases("login_modules"))
def test_each_login_module_is_translated(jaas: str, expected: dict[str, str]) -> None:
    assert settings(f"sasl.jaas.config={jaas}") == expected


@pytest.mark.parametrize("jaas", stored_cases("invalid_logins"))
def test_errors_of_invalid_logins_do_not_contain_the_secret(jaas: str) -> None:
    message = error_of(f"\nsasl.jaas.config={jaas}")
    assert message.startswith("c.properties:2: sasl.jaas.config")
    assert "secret" not in message


def test_pem_and_pkcs12_stores_are_translated() -> None:
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


@pytest.mark.parametrize(("text", "advice"), stored_cases("unsupported_java_stores"))
def test_errors_of_java_stores_explain_the_conversion(text: str, advice: str) -> None:
    line = text.count("\n") + 1
    assert error_of(text).startswith(f"c.properties:{line}: {advice}")


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    file.write_text("security.protocol=SSL\nssl.truststore.location=/none/ca.pem\n")
    with pytest.raises(InputError, match=r"c\.properties:2: .*no such file: /none/ca\.pem"):
        load_librdkafka_settings(file)


def test_unknown_properties_are_rejected_with_file_and_line() -> None:
    assert error_of("# x\nclient.id=a\\\n b\nssl.protocl=s3cret\n") == (
        "c.properties:4: kassay does not support the property 'ssl.protocl'; remove it"
    )


def client_error(settings: dict[str, str]) -> str:
    try:
        AdminClient(settings)
    except Exception as error:  # noqa: BLE001 - the type depends on the property
        return str(error)
    return ""


@pytest.mark.parametrize("key", sorted(key for key, name in PROPERTIES.items() if name != IGNORED))
def test_librdkafka_knows_the_names_of_all_translated_properties(key: str) -> None:
    translated = librdkafka_settings({key: Property(key, "\x01", 1)}, name="c.properties")
    assert len(translated) == 1
    assert "No such configuration property" not in client_error(translated)


MSK = "b-1.x.kafka.us-east-1.amazonaws.com:9098"
IAM = "software.amazon.msk.auth.iam"
HANDLER = f"sasl.client.callback.handler.class={IAM}.IAMClientCallbackHandler\n"
IAM_LOGIN = f"sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config={IAM}.IAMLoginModule required"


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Install a signer that records its calls; the expiry is in milliseconds."""
    calls: list[tuple[object, ...]] = []

    def generate(*args: object, **options: object) -> tuple[str, int]:
        calls.append((*args, *options.values()))
        return "token", 5_000

    names = ("", "_from_profile", "_from_role_arn")
    module = SimpleNamespace(**{f"generate_auth_token{name}": generate for name in names})
    monkeypatch.setitem(
        sys.modules, "aws_msk_iam_sasl_signer", ModuleType("aws_msk_iam_sasl_signer")
    )
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", module)
    return calls


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (f"{HANDLER}{IAM_LOGIN};", ("us-east-1",)),
        (f'{IAM_LOGIN} awsProfileName="dev" awsDebugCreds=true;', ("us-east-1", "dev")),
        (
            f'{IAM_LOGIN} awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName="s";',
            ("us-east-1", "arn:aws:iam::1:role/r", "s"),
        ),
        (
            (
                f"sasl.login.callback.handler.class={IAM}.IAMOAuthBearerLoginCallbackHandler\n"
                "sasl.mechanism=OAUTHBEARER\n"
                f"sasl.jaas.config={MODULES}.oauthbearer.OAuthBearerLoginModule required;"
            ),
            ("us-east-1",),
        ),
    ],
)
def test_iam_of_msk_is_a_login_with_tokens(
    signer: list[tuple[object, ...]], text: str, call: tuple[str, ...]
) -> None:
    known = settings(text)
    properties = connection_properties(known, MSK)
    assert properties.pop("oauth_cb")("") == ("token", 5.0)
    assert properties == {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}
    assert kafka_python_settings(known, MSK)["sasl_oauth_token_provider"].token() == "token"
    assert set(signer) == {call}


def test_iam_of_msk_without_the_signer_or_a_region_says_what_to_do(
    signer: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(InputError, match="localhost:9098: the host name contains no AWS region"):
        LiveCluster("localhost:9098", settings(f"{IAM_LOGIN};"))
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
    with pytest.raises(InputError, match=r"pip install aws-msk.*use captures: kassay import"):
        LiveCluster(MSK, settings(f"{IAM_LOGIN};"))
    assert signer == []


def test_the_handler_of_kafka_is_known_and_another_one_is_an_error() -> None:
    handler = "sasl.login.callback.handler.class={}.OAuthBearerLoginCallbackHandler"
    assert settings(handler.format(f"{MODULES}.oauthbearer")) == {}
    assert "handler.class'; remove it" in error_of("sasl.login.callback.handler.class=x.Own")
