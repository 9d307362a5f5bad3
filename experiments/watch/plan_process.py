"""Create the page of a plan in a child process, the memory of which is then released."""

import multiprocessing
import signal
from multiprocessing.connection import Connection

from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import PlanArguments
from kassay.experiments.planning.render_plans import PAGE, render_plan
from kassay.reference.model.errors import KassayError, RunError
from kassay.reference.model.group import Group


def plan_page(group: Group, source: str) -> str:
    """Plan a group in a child process, and return the page or raise KassayError.

    In the process of the watcher, OR-Tools and Matplotlib would occupy 50 MB permanently.
    """
    context = multiprocessing.get_context("spawn")  # a fork could copy locks of other threads
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_page, args=(sender, group, source), daemon=True)
    child.start()
    sender.close()  # only the child process can send now, so that its end is noticed
    with receiver:
        try:
            page = receiver.recv()
        except EOFError:
            raise RunError("the planning process ended, possibly because memory ran out") from None
        finally:
            child.join()
    if isinstance(page, KassayError):
        raise page
    return str(page)


def _send_page(sender: Connection, group: Group, source: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the watcher, which ends its children
    selected = () if group.id is None else ("--group", group.id)
    arguments = PlanArguments(source=(source,), selected=selected)
    try:
        found = plan(group, limits=CaseLimits(work=20.0))
        page: str | KassayError = render_plan(found, PAGE, directory=None, arguments=arguments)
    except KassayError as error:
        page = error
    sender.send(page)
