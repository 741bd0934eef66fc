# 2026-03-02 10:11:12 by RouterOS 7.14
# model = RB5009UG+S+
/interface ethernet
set [ find default-name=ether1 ] name=ether1-wan speed=1G-baseT-full
/queue type
add kind=red name=red-data red-avg-packet=1000 red-burst=25 red-limit=90 \
    red-max-threshold=60 red-min-threshold=20
add fq-codel-ecn=no fq-codel-limit=2000 fq-codel-target=10ms kind=fq-codel \
    name=fq-rest
/queue tree
add max-limit=50M name=wan parent=ether1-wan
add limit-at=5M max-limit=10M name=voice packet-mark=voice parent=wan \
    priority=1 queue=default-small
add bucket-size=0.01 limit-at=20M max-limit=50M name=data packet-mark=data,bulk \
    parent=wan priority=3 queue=red-data
add limit-at=10M max-limit=50M name=rest packet-mark=no-mark parent=wan \
    queue=fq-rest
/ip address
add address=192.0.2.1/30 interface=ether1-wan network=192.0.2.0
/ip firewall mangle
add action=mark-connection chain=prerouting dscp=46 new-connection-mark=\
    voice-conn passthrough=yes
add action=mark-packet chain=postrouting connection-mark=voice-conn \
    new-packet-mark=voice passthrough=no
add action=mark-packet chain=postrouting dscp=18 new-packet-mark=data passthrough=no
add action=mark-packet chain=postrouting comment="backups, \"big\" ones" dscp=8 \
    new-packet-mark=bulk out-interface=ether1-wan passthrough=no
add action=mark-packet chain=postrouting dscp=10 new-packet-mark=bulk out-interface=ether2
add action=change-dscp chain=postrouting new-dscp=0
/system identity
set name=edge
