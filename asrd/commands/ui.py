"""Look at sessions in a browser: timelines, replay, lineage, usage and cost.

Opens a page that this command serves on 127.0.0.1 until it is ended (Ctrl-C). The link opens once and in one browser. Nothing
is asked of any other machine. Live while a daemon records (`asrd run`); else it shows what is recorded and looks every second.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import webbrowser

from asrd.commands._common import asker, here, json_argument, session_argument
from asrd.paths import folders
from asrd.text import Paper


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser, optional=True)
    parser.add_argument("--port", type=int, default=0, help="a fixed port (default: any that is free)")
    parser.add_argument("--no-open", action="store_true", help="print the link, open no browser")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    from asrd.ui.server import Viewer

    ask = asker()
    ask.rows()  # brings the index up to date, and says when nothing is recorded
    place = ""
    if args.session:
        one = ask.ask("session.get", {"session": args.session, "cwd": here()})["session"]
        place = address(one)
    viewer = Viewer(folders(), args.port)
    url = viewer.url + place
    if args.json:
        sys.stdout.write(f'{{"schema":"asrd.ui/1","url":"{url}"}}\n')
    else:
        Paper().line(f"{url}\nOpens once; Ctrl-C ends it.")
    sys.stdout.flush()

    def end(*_: object) -> None:
        threading.Thread(target=viewer.stop).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    if not args.no_open:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    viewer.run()
    return 0


def address(session: dict[str, str | None]) -> str:
    """Where the page shows a session: the part of the link behind `#`."""
    from urllib.parse import quote

    parts = [session["agent"], session["sessionId"], *([session["namespace"]] if session["namespace"] else [])]
    return "#/s/" + "/".join(quote(p or "", safe="") for p in parts)
