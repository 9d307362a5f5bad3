"""Log in to Amazon MSK with IAM, by tokens (SASL/OAUTHBEARER)."""

import importlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from kassay.reference.model.errors import InputError

MECHANISM = "AWS_MSK_IAM"
PROFILE, ROLE, SESSION = "aws.profile", "aws.role.arn", "aws.role.session"
"""Keys of AWS settings, which only this module reads."""
_REGION = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")
_CAPTURES = (
    "without access, use captures: kassay import FILE with the output of "
    "kafka-consumer-groups.sh --describe"
)
Token = tuple[str, float]
"""Token, and its time of expiry in seconds since 1970."""


def connection_properties(settings: Mapping[str, str], servers: str) -> dict[str, Any]:
    """Return librdkafka properties, with a callback that creates tokens if they use IAM."""
    token = token_source(settings, servers)
    if token is None:
        return dict(settings)
    return {**oauth_properties(settings), "oauth_cb": lambda _config: token()}


def oauth_properties(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for a login with tokens."""
    foreign = ("aws.", "sasl.oauthbearer.")
    known = {name: value for name, value in settings.items() if not name.startswith(foreign)}
    return {"security.protocol": "SASL_SSL", **known, "sasl.mechanisms": "OAUTHBEARER"}


def token_source(settings: Mapping[str, str], servers: str) -> Callable[[], Token] | None:
    """Return a function that returns tokens, or None if the login does not use tokens.

    Raise InputError if the signer is not installed, or finds no credentials.
    """
    if settings.get("sasl.mechanisms") != MECHANISM:
        return None
    try:
        signer = importlib.import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    except ImportError:
        install = "pip install aws-msk-iam-sasl-signer-python"
        message = f"{MECHANISM} needs the signer of Amazon: {install}; {_CAPTURES}"
        raise InputError(message) from None
    found = _REGION.search(servers)
    region = (
        found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    )
    if region is None:
        raise InputError(f"{servers}: the host name contains no AWS region; set AWS_REGION")

    def token() -> Token:
        if ROLE in settings:
            session = {"sts_session_name": settings[SESSION]} if SESSION in settings else {}
            text, expiry = signer.generate_auth_token_from_role_arn(
                region, settings[ROLE], **session
            )
        elif PROFILE in settings:
            text, expiry = signer.generate_auth_token_from_profile(region, settings[PROFILE])
        else:
            text, expiry = signer.generate_auth_token(region)
        return text, expiry / 1000

    try:
        token()
    except Exception as error:  # noqa: BLE001 - of boto3, botocore and the signer
        reason = "no credentials" if isinstance(error, AttributeError) else error
        raise InputError(
            f"{servers}: cannot create a token for {MECHANISM}: {reason}; {_CAPTURES}"
        ) from None
    return token
