# 2026-05-06 07:08:09 by RouterOS 7.18
/queue/type/add name=cake-up kind=cake cake-bandwidth=18M cake-rtt-scheme=metro cake-diffserv=diffserv4 cake-nat=yes cake-overhead=22 cake-overhead-scheme=ethernet
/queue/type/add name=cake-limit kind=cake cake-bandwidth=40M cake-rtt=50ms
/queue/interface
set [ find interface=ether1 ] queue=cake-up
set ether2 queue=only-hardware-queue
set ether3 queue=ethernet-default
/queue tree
add name=lan parent=bridge max-limit=90M queue=cake-limit packet-mark=""
