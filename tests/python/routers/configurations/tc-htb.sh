#!/bin/sh
DEV=eth1
UP=20mbit
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1: classid 1:1 htb rate $UP burst 15k
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 4mbit ceil $UP prio 0
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 10mbit ceil 15mbit
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 5mbit ceil $UP \
    burst 15k
tc qdisc add dev $DEV parent 1:10 handle 10: pfifo limit 50
tc qdisc add dev $DEV parent 1:20 handle 20: red limit 400KB min 30KB max 90KB avpkt 1000 burst 55 probability 0.1 bandwidth 10mbit ecn
tc qdisc add dev $DEV parent 1:30 handle 30: fq_codel limit 1000
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip dsfield 0x28 0xfc flowid 1:20
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip dport 80 0xffff flowid 1:20
iptables -t mangle -A POSTROUTING -j CONNMARK
