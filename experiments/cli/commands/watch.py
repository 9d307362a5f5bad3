"""``kassay watch``: watch the groups of a cluster, and serve metrics and pages."""

import signal
import ssl
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import typer

from kassay.experiments.cli.application import REQUIRED, argument, option, print_note
from kassay.experiments.cli.shared_options import ClusterOptions
from kassay.experiments.history.group_records import OffsetsReader
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.watch.event_database import Store
from kassay.experiments.watch.server import Pages, WatchServer
from kassay.experiments.watch.watcher import Watcher
from kassay.reference.documents.files import read_text
from kassay.reference.model.errors import InputError

# A backlog of records must not fill the memory.
_RECORD_SETTINGS = {"fetch.max.bytes": "1000000", "queued.max.messages.kbytes": "2048"}
_LOOPBACK = ("127.", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions(ClusterOptions):
    """Command-line options of ``kassay watch``."""

    bootstrap_server: str = argument(REQUIRED, metavar="HOST:PORT")
    interval: float = option(60.0, min=1.0)
    database: Path = option(Path("kassay-watch.sqlite"))
    days: float = option(30.0, min=0.01, metavar="DAYS")
    listen: str = option("127.0.0.1:9308", metavar="ADDRESS:PORT")
    credentials: Path | None = option(None)
    certificate: Path | None = option(None)
    key: Path | None = option(None)
    hash_names: bool = option(False)


def watch(options: WatchOptions) -> None:
    """Run ``kassay watch`` with parsed options."""
    settings, source, stop = options.settings(), options.bootstrap_server, Event()
    store = Store(options.database, days=options.days)
    watcher = Watcher(
        lambda: LiveCluster(source, settings, timeout=options.timeout),
        store,
        hash_names=options.hash_names,
        on_change=print_note,
        records=OffsetsReader({**settings, **_RECORD_SETTINGS, "bootstrap.servers": source}),
    )
    server = _server(options, Pages(watcher, store, source=source))
    Thread(target=server.serve_forever, daemon=True).start()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: stop.set())
    watcher.run(stop, interval=options.interval)
    server.shutdown()
    store.close()


def _server(options: WatchOptions, pages: Pages) -> WatchServer:
    host, _, port = options.listen.rpartition(":")
    host, file, tls = host.strip("[]"), options.credentials, None
    if not host or not port.isdigit():
        raise typer.BadParameter(f"--listen must be ADDRESS:PORT, got {options.listen!r}")
    credentials = None if file is None else read_text(file).strip("\r\n")
    if credentials is not None and (":" not in credentials or "\n" in credentials):
        raise InputError(f"{file}: the file must have one line USER:PASSWORD")
    if credentials is None and not host.startswith(_LOOPBACK):
        print_note("all clients can read the page: --credentials sets a user and a password")
    try:
        if options.certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(options.certificate, options.key)
        server = WatchServer((host, int(port)), pages, credentials=credentials, tls=tls)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {options.listen}: {error}") from None
    scheme = "http" if tls is None else "https"
    print_note(f"{scheme}://{options.listen}/ has the groups, and /metrics their metrics")
    return server
