"""SONiC, read."""
