"""`python -m perhop` is `perhop`."""

import os

try:
    from perhop.entry import main

    main()
except KeyboardInterrupt:  # before `perhop.entry` has taken over Ctrl-C
    os._exit(130)
