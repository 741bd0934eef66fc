tc qdisc add dev eth0 root handle 1: gred setup vqs 2 default 1 grio limit 300000
tc qdisc change dev eth0 root gred vq 0 limit 300000 min 60000 max 120000 avpkt 1000 burst 80 probability 0.05 bandwidth 20mbit prio 3
tc qdisc change dev eth0 root gred vq 1 limit 300000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.10 bandwidth 20mbit prio 3
