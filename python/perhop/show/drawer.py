"""The process of a drawer; started by `drawers.py`, never imported.

Arguments: where modules are, as a JSON list. Standard input: pickled pairs of a function and its arguments.
Standard output: a pickled picture for each, or None where it failed: who asked for it then draws it, and
meets the error.
"""

import json
import os
import pickle
import sys


def main() -> None:
    """Draw until there is nothing left to read."""
    sys.path[:] = json.loads(sys.argv[1])
    # What a library prints must not stand amid pictures.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            work, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process wrote it
        except EOFError:
            return
        try:
            answer = pickle.dumps(work(*arguments))
        except Exception:  # noqa: BLE001 - it is met again where it can be said
            answer = pickle.dumps(None)
        try:
            answers.write(answer)
            answers.flush()
        except OSError:
            os._exit(0)  # nobody wants it any more


main()
