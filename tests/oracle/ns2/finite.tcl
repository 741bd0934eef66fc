# Finite TCP flows over one bottleneck in ns-2.35: Agent/TCP/Newreno or Agent/TCP/Sack1, Queue/RED or drop-tail.
#
#   ns finite.tcl [KEY=VALUE ...]
#
# Prints one line `flow number=... done=...` for each flow that completed by the end: the time in seconds at which the sender had
# the acknowledgement of its last packet; and one line `queue arrived=... dropped=...`. Rates in bit/s, times in seconds, sizes in
# bytes on the wire, queues in packets.
#
# tcp: Newreno or Sack1; window: window_.
# queue: DropTail or RED. thresholds: MIN/MAX/MAX_P of RED, whole packets; weight: w_q; limit: packets waiting.
# starts, volumes: a start time and a number of data packets for each flow. hosts: pairs of hosts that they share.

array set setting {
    seed 1 tcp Newreno window 1000 rate 1e7 delay 0.02 access_rate 1e8 access_delay 0.001 hosts 50
    queue DropTail thresholds 15/45/0.1 limit 100 weight 0.002 packet 1000 duration 100 warmup 0 starts 0 volumes 10
}

proc refuse {message} {
    puts stderr "finite.tcl: $message"
    exit 2
}

foreach argument $argv {
    if {![regexp {^([A-Za-z0-9_]+)=(.*)$} $argument -> key value]} {
        refuse "not KEY=VALUE: `$argument`"
    }
    if {![info exists setting($key)]} {
        refuse "unknown key `$key`"
    }
    set setting($key) $value
}

set ns [new Simulator]
$defaultRNG seed $setting(seed)
Queue/DropTail set limit_ 1000000
# An agent's first ssthresh is the class's default of window_, so that is what is set.
Agent/TCP set window_ $setting(window)
Agent/TCP set packetSize_ [expr {$setting(packet) - 40}]

Agent/TCP instproc done {} {
    global ns number
    puts "flow number=$number($self) done=[format %.9f [$ns now]]"
}

set edge [$ns node]
set core [$ns node]
foreach {min max max_p} [split $setting(thresholds) /] break
foreach {name value} [list thresh_ $min maxthresh_ $max linterm_ [expr {1.0 / $max_p}] \
        q_weight_ $setting(weight) mean_pktsize_ $setting(packet) \
        wait_ true gentle_ false adaptive_ 0 bytes_ false queue_in_bytes_ false] {
    Queue/RED set $name $value
}
$ns simplex-link $edge $core $setting(rate) $setting(delay) $setting(queue)
[[$ns link $edge $core] queue] set limit_ $setting(limit)
$ns simplex-link $core $edge $setting(rate) $setting(delay) DropTail
set monitor [$ns monitor-queue $edge $core ""]

for {set i 0} {$i < $setting(hosts)} {incr i} {
    set host($i) [$ns node]
    set peer($i) [$ns node]
    $ns duplex-link $host($i) $edge $setting(access_rate) $setting(access_delay) DropTail
    $ns duplex-link $core $peer($i) $setting(access_rate) $setting(access_delay) DropTail
}

set i 0
foreach start [split $setting(starts) ,] volume [split $setting(volumes) ,] {
    set sender [new Agent/TCP/$setting(tcp)]
    set sink [new [expr {$setting(tcp) eq "Sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]]
    $ns attach-agent $host([expr {$i % $setting(hosts)}]) $sender
    $ns attach-agent $peer([expr {$i % $setting(hosts)}]) $sink
    $ns connect $sender $sink
    set number($sender) $i
    # Numbers begin with 0, the packet that opens the connection, so that this is the last one.
    $ns at $start "$sender advanceby $volume"
    incr i
}

proc report {} {
    global monitor
    puts "queue arrived=[$monitor set parrivals_] dropped=[$monitor set pdrops_]"
    exit 0
}

$ns at $setting(duration) report
$ns run
