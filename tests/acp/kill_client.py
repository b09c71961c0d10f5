"""`python kill_client.py FOLDER SCRIPT HEARD`: plays a client's part, says `played` on stderr, and waits to be killed."""

import json
import sys
import time

sys.path.insert(0, sys.argv[1])

from replay import play  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

with open(sys.argv[2], encoding="utf-8") as file:
    told = json.load(file)
play("client", told, sys.argv[3])
sys.stderr.write("played\n")
sys.stderr.flush()
time.sleep(60)
