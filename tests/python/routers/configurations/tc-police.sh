tc qdisc add dev eth2 handle ffff: ingress
tc filter add dev eth2 parent ffff: protocol ip prio 10 u32 match ip tos 0xb8 0xfc police rate 1mbit burst 10k drop flowid :1
tc filter add dev eth2 parent ffff: protocol ip prio 50 u32 match u32 0 0 police rate 3.5mbps burst 100k drop flowid :1
