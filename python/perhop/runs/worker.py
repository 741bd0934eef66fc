"""The process of a simulator; started by `one_run.py`, never imported.

Arguments: where modules are, as a JSON list. Standard input: pickled scenarios, seeds and engines.
Standard output: a pickled outcome for each, or None where it failed: who asked for it then runs it, and meets
the error.
"""

import json
import os
import pickle
import sys


def main() -> None:
    """Simulate until there is nothing left to read."""
    sys.path[:] = json.loads(sys.argv[1])
    # What a class prints must not stand amid outcomes.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from perhop import _engine  # noqa: PLC0415 - it is found now

    _engine.end_with_parent()  # a class that stays in C code would keep this process

    while True:
        try:
            scenario, seed, engine = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process wrote it
        except EOFError:
            return
        try:
            answer = pickle.dumps(_engine.simulate(scenario, seed, None, engine=engine))
        except Exception:  # noqa: BLE001 - it is met again where it can be said
            answer = pickle.dumps(None)
        try:
            answers.write(answer)
            answers.flush()
        except OSError:
            os._exit(0)  # nobody wants it any more


main()
