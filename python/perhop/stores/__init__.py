"""Finished runs that outlive any failure: whole outcomes for `perhop reproduce`, measures for sweeps.

A store is a directory of journals (`journal`: the format), one for each process that writes. Each record is a
finished run, or the scenario of runs, under its checksum; `outcomes` and `measures` say what it holds.
`directory` opens both kinds of stores: it reads every journal, cuts out what broke where the writer has
ended, and appends to a journal of its own. A writer holds a lock on its journal while it lives, so two
processes share a store without waiting for each other: each reads all journals, and changes only its own and
those that nobody writes any more. `outcomes.DirectoryStore` finds outcomes by key; `sweeps.SweepStore` gives
frames of measures (`metrics`: what is measured, `companions`: what intervals need beside it). `segments`
reads what earlier versions made of a sweep's journals. `verify` checks a store and changes nothing.
"""
