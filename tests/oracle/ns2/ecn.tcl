# TCP flows with ECN over one bottleneck in ns-2.35: Agent/TCP/Newreno or Agent/TCP/Sack1 (ecn_), Queue/RED (setbit_).
#
#   ns ecn.tcl [KEY=VALUE ...]
#
# Prints one line `flow acked_packets=... reductions=...` for each flow and one line `queue arrived=... dropped=... marked=...
# bytes=...`; all of it counts after the warm-up. marked and bytes are of packets as they leave the queue. Rates in bit/s, times in
# seconds, sizes in bytes on the wire, queues in packets.
#
# tcp: Newreno or Sack1; ecn: 0 or 1, for senders and queue; window: window_.
# thresholds: MIN/MAX/MAX_P, whole packets; weight: w_q; limit: packets waiting.
# starts: one start time for each flow.

array set setting {
    seed 1 tcp Newreno ecn 1 window 1000 rate 1e7 delay 0.02 access_rate 1e8 access_delay 0.001
    thresholds 15/45/0.1 limit 200 weight 0.002 packet 1000 duration 60 warmup 10 starts 0
}

proc refuse {message} {
    puts stderr "ecn.tcl: $message"
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
Agent/TCP set ecn_ $setting(ecn)

set edge [$ns node]
set core [$ns node]
foreach {min max max_p} [split $setting(thresholds) /] break
# mark_p_ would drop where the probability is above 0.1; without it every early choice is a mark, as in RFC 3168.
foreach {name value} [list thresh_ $min maxthresh_ $max linterm_ [expr {1.0 / $max_p}] \
        q_weight_ $setting(weight) mean_pktsize_ $setting(packet) setbit_ $setting(ecn) use_mark_p_ false \
        wait_ true gentle_ false adaptive_ 0 bytes_ false queue_in_bytes_ false] {
    Queue/RED set $name $value
}
$ns simplex-link $edge $core $setting(rate) $setting(delay) RED
[[$ns link $edge $core] queue] set limit_ $setting(limit)
$ns simplex-link $core $edge $setting(rate) $setting(delay) DropTail

# A queue's monitor counts no marks, so the packets are counted in its trace: column 7 has their flags, E of a mark.
set trace [open "|awk {\$2 >= $setting(warmup) { if (\$1 == \"+\") came++; else if (\$1 == \"d\") lost++; \
    else if (\$1 == \"-\") { bytes += \$6; if (index(\$7, \"E\")) marked++ } } \
    END { printf \"queue arrived=%d dropped=%d marked=%d bytes=%d\\n\", came, lost, marked, bytes }}" w]
$ns trace-queue $edge $core $trace

for {set i 0} {$i < [llength [split $setting(starts) ,]]} {incr i} {
    set host [$ns node]
    set peer [$ns node]
    $ns duplex-link $host $edge $setting(access_rate) $setting(access_delay) DropTail
    $ns duplex-link $core $peer $setting(access_rate) $setting(access_delay) DropTail
    set senders($i) [new Agent/TCP/$setting(tcp)]
    set sink [new [expr {$setting(tcp) eq "Sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]]
    $ns attach-agent $host $senders($i)
    $ns attach-agent $peer $sink
    $ns connect $senders($i) $sink
    set source [new Application/FTP]
    $source attach-agent $senders($i)
    $ns at [lindex [split $setting(starts) ,] $i] "$source start"
    set before($i) {0 0}
}

proc counted {i} {
    global senders
    return [list [$senders($i) set ack_] [$senders($i) set necnresponses_]]
}

proc note_warmup {} {
    global before
    foreach i [array names before] {
        set before($i) [counted $i]
    }
}

proc report {} {
    global ns before trace
    $ns flush-trace
    for {set i 0} {$i < [array size before]} {incr i} {
        foreach {acked reductions} [counted $i] {acked_before reductions_before} $before($i) {
            puts "flow acked_packets=[expr {$acked - $acked_before}] reductions=[expr {$reductions - $reductions_before}]"
        }
    }
    flush stdout
    close $trace
    exit 0
}

$ns at $setting(warmup) note_warmup
$ns at $setting(duration) report
$ns run
