"""`python -m perhop` is `perhop`."""

import os

try:
    from perhop.commands.entry import main

    main()
except KeyboardInterrupt:  # before `perhop.commands.entry` has taken over Ctrl-C
    os._exit(130)
