"""Client properties by what becomes of them when they are passed on to librdkafka."""

# Both clients name them alike, or only librdkafka has them.
UNCHANGED = frozenset(
    {
        "broker.address.family",
        "client.dns.lookup",
        "client.id",
        "connections.max.idle.ms",
        "enable.ssl.certificate.verification",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "sasl.kerberos.keytab",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.timeout.ms",
        "ssl.ca.certificate.stores",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.sigalgs.list",
    }
)
# They stand in the files that people share between programs, and govern what is not done here.
WITHOUT_EFFECT = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "group.id",
        "key.deserializer",
        "key.serializer",
        "session.timeout.ms",
        "value.deserializer",
        "value.serializer",
    }
)
# Java's name to librdkafka's.
RENAMED = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
