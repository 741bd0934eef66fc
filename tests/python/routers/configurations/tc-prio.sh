TC=/sbin/tc
$TC qdisc add dev wan0 root handle 1: tbf rate 8mbit burst 32kbit latency 400ms
$TC qdisc add dev wan0 parent 1:1 handle 2: prio bands 4 priomap 3 3 3 3 3 3 1 1 1 1 1 1 1 1 1 1
$TC qdisc add dev wan0 parent 2:1 handle 21: bfifo limit 15k
$TC qdisc add dev wan0 parent 2:2 handle 22: codel target 5ms interval 100ms limit 300 ecn
$TC qdisc add dev wan0 parent 2:3 handle 23: sfq perturb 10
$TC filter add dev wan0 parent 2: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 2:1
for dscp in 0x28 0x30; do
  $TC filter add dev wan0 parent 2: protocol ip prio 2 u32 match ip tos $dscp 0xfc flowid 2:2
done
