# Several queues of one interface without a common parent; none is of all packets.
/queue tree
add name=gold parent=ether5 packet-mark=gold limit-at=8M max-limit=6M priority=2 queue=default
add name=web parent=ether5 packet-mark=web max-limit=4M queue=missing
add name=deep parent=web2 packet-mark=x max-limit=1M
/ip firewall mangle
add chain=forward action=mark-packet new-packet-mark=gold dscp=!0 passthrough=yes
add chain=forward action=mark-packet new-packet-mark=web protocol=tcp dst-port=443
/queue tree set gold priority=1
