DEV="core0"
tc qdisc add dev $DEV clsact
tc qdisc add dev $DEV root handle 1: gred setup vqs 2 default 1 grio limit 400kb ecn harddrop
tc qdisc change dev $DEV root gred vq 0 limit 400kb min 120kb max 240kb avpkt 1000 burst 180 probability 0.02 bandwidth 50mbit prio 1
tc qdisc change dev $DEV root gred vq 1 limit 400kb min 40kb max 120kb avpkt 1000 burst 60 probability 0.1 bandwidth 50mbit prio 2
tc filter add dev $DEV egress protocol ip flower ip_tos 0x28/0xfc classid :0
