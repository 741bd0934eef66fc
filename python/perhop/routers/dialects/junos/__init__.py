"""Junos class-of-service and firewall policers, read and written."""
