# jan/02/2021 03:04:05 by RouterOS 6.48.3
/queue type
add kind=pcq name=pcq-down pcq-classifier=dst-address pcq-rate=2M pcq-total-limit=4000KiB
/queue simple
add max-limit=20M/100M name=site queue=default/default target=192.168.88.0/24
add limit-at=2M/10M max-limit=5M/30M name=phones packet-marks=voice parent=site \
    priority=1/1 queue=default-small/default-small target=""
add burst-limit=8M/40M burst-threshold=4M/20M burst-time=8s/8s limit-at=4M/20M \
    max-limit=20M/100M name=guests parent=site queue=wireless-default/pcq-down target=192.168.88.128/25
add disabled=yes max-limit=1M/1M name=old target=192.168.88.9/32
/ip firewall mangle
add action=mark-packet chain=forward dscp=46 new-packet-mark=voice passthrough=no
