"""`python -m perhop` is `perhop`."""

from perhop.cli import main

main()
