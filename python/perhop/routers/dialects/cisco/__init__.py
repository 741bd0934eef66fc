"""Cisco's IOS, IOS-XR and NX-OS: one reader of their modular QoS command line, three sets of defaults."""
