"""Bring what is recorded to a folder or an object store: streams in parts, and Parquet tables of many machines.

    asrd ship /mnt/fleet                    a folder
    asrd ship s3://bucket/agents            S3 or what speaks it; keys from AWS_… (AWS_ENDPOINT_URL for others)
    asrd ship s3://bucket/agents --key KEYFILE     streams encrypted here (64 hex digits), no tables

Run again it brings only what is new. Streams go as they stand, words and all; tables hold none (docs/fleet.md).
Needs `pip install 'asrd[ship]'`.
"""

from __future__ import annotations

import argparse
import re
import socket
import sys

import msgspec

from asrd.client import open_reader
from asrd.commands._common import asker, json_argument, print_json
from asrd.errors import UsageError
from asrd.ship import Shipped, read_key, ship_streams, ship_tables, target_of
from asrd.text import inert, size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("target", metavar="TARGET", help="a folder, or s3://BUCKET/PREFIX")
    parser.add_argument("--host", metavar="NAME", help="what this machine is called there (default: its name)")
    parser.add_argument("--key", metavar="FILE", help="encrypt streams with this key (64 hex digits)")
    parser.add_argument("--only", choices=("streams", "tables"), help="the one or the other")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    host = args.host or re.sub(r"[^A-Za-z0-9_.-]", "_", socket.gethostname())
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}", host):
        raise UsageError(what=f"the host name {host}", command="ship")
    if args.key and args.only == "tables":
        raise UsageError(what="--key with --only tables (tables are not encrypted)", command="ship")
    key = read_key(args.key) if args.key else None
    target = target_of(args.target)
    ask = asker()
    rows = ask.rows()
    stored = [*rows.sessions(), *rows.own()]
    streams = ship_streams(rows, stored, target, host, key) if args.only != "tables" else Shipped()
    tables = Shipped()
    if args.only != "streams" and key is None:
        db = open_reader(ask.folders)
        try:
            tables = ship_tables(db, rows, stored, target, host)
        finally:
            db.close()
    if args.json:
        told = {"streams": msgspec.to_builtins(streams), "tables": msgspec.to_builtins(tables)}
        print_json({"schema": "asrd.ship/1", "target": args.target, "host": host, "encrypted": key is not None, **told})
    else:
        sys.stderr.write(
            inert(
                f"{streams.streams:,} streams had something new ({size(streams.bytes)}), "
                f"{sum(tables.rows.values()):,} rows of tables ({size(tables.bytes)}): {args.target}\n"
            )
        )
    return 0
