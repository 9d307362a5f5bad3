# Image of kassay, for `docker build -t kassay .`; deploy/build_image builds it without Docker.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ARG PIP_CERT=""
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE requirements.lock ./
COPY reference reference
COPY solver solver
COPY experiments experiments
COPY kassay kassay
# The root file system is read-only when the image runs, so byte code is written here, for the
# modules that the commands of the last line import.
RUN python3 -m venv /opt/kassay \
    && /opt/kassay/bin/pip install --no-cache-dir --no-compile --constraint requirements.lock '.[live,plots]' \
    && find /opt/kassay -type d -name tests -prune -exec rm -r {} + \
    && /opt/kassay/bin/python -m compileall -q /opt/kassay/lib/python3*/site-packages/kassay \
    && /opt/kassay/bin/kassay doctor \
    && /opt/kassay/bin/pip uninstall --yes pip

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="kassay" \
      org.opencontainers.image.description="Find why a Kafka consumer group is unbalanced, and the change with the fewest moves" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/kassay /opt/kassay
RUN install -d -o 10001 -g 10001 /var/lib/kassay
ENV PATH=/opt/kassay/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
# Database of the watcher.
VOLUME /var/lib/kassay
WORKDIR /var/lib/kassay
EXPOSE 9308
# A cluster that does not answer is a metric of the watcher, and not a failed check. The port is
# also open with TLS and with credentials.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 9308), 5)"]
ENTRYPOINT ["kassay"]
CMD ["watch"]
