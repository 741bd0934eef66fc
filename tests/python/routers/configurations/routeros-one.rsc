/queue simple
add bucket-size=0.2/0.1 max-limit=10M/40M name=home queue=codel-up/fifo-down target=bridge time=0s-1d,mon total-max-limit=45M
/queue type
add codel-ecn=yes codel-interval=80ms codel-target=4ms kind=codel name=codel-up
add bfifo-limit=60KiB kind=bfifo name=fifo-down
set 0 kind=pfifo name=default pfifo-limit=100
