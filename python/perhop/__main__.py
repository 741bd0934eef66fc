"""`python -m perhop` is `perhop`."""

from perhop.entry import main

main()
