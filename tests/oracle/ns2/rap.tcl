# RAP and NewReno flows over one bottleneck in ns-2.35: Agent/RAP, Agent/TCP/Newreno, drop-tail or dsRED.
#
#   ns rap.tcl [KEY=VALUE ...]
#
# Prints one line `flow kind=... packets=...` for each flow: data packets that reached the receiver after the
# warm-up. Rates in bit/s, times in seconds, sizes in bytes on the wire, queues in packets.
#
# rap, tcp: how many flows of each kind; window: window_ of TCP.
# queue: tail, red or dsred; thresholds: MIN/MAX/MAX_P, whole packets; weight: w_q; limit: packets waiting.
# starts: one start time for each flow, RAP first.
# names of Agent/RAP's own options, such as delta_=0.125, go to every RAP sender.
# sample: interval at which the first RAP flow's ipg_ and srtt_ are printed, `gap at=… ipg=… srtt=…`; 0 never.

array set setting {
    seed 1 rap 1 tcp 0 window 1000 rate 1e7 delay 0.02 access_rate 1e8 access_delay 0.001
    queue tail thresholds 10/50/0.1 limit 50 weight 0.002 packet 1000 duration 100 warmup 20 starts 0 sample 0
}
array set rap_options {}

proc refuse {message} {
    puts stderr "rap.tcl: $message"
    exit 2
}

foreach argument $argv {
    if {![regexp {^([A-Za-z0-9_]+)=(.*)$} $argument -> key value]} {
        refuse "not KEY=VALUE: `$argument`"
    }
    if {[info exists setting($key)]} {
        set setting($key) $value
    } elseif {[string match *_ $key] && ![catch {Agent/RAP set $key}]} {
        set rap_options($key) $value
    } else {
        refuse "unknown key `$key`"
    }
}

set ns [new Simulator]
$defaultRNG seed $setting(seed)
Queue/DropTail set limit_ 1000000
# An agent's first ssthresh is the class's default of window_, so that is what is set.
Agent/TCP set window_ $setting(window)
Agent/TCP set packetSize_ [expr {$setting(packet) - 40}]
set starts [split $setting(starts) ,]
if {[llength $starts] != $setting(rap) + $setting(tcp)} {
    refuse "starts has [llength $starts] values for [expr {$setting(rap) + $setting(tcp)}] flows"
}

set edge [$ns node]
set core [$ns node]
foreach {min max max_p} [split $setting(thresholds) /] break
switch -- $setting(queue) {
    tail {
        $ns simplex-link $edge $core $setting(rate) $setting(delay) DropTail
    }
    red {
        # Floyd and Jacobson's, without what ns-2 added since: no wait, no gentle, no adaptation of max_p.
        foreach {name value} [list thresh_ $min maxthresh_ $max linterm_ [expr {1.0 / $max_p}] \
                q_weight_ $setting(weight) mean_pktsize_ $setting(packet) \
                wait_ false gentle_ false adaptive_ 0 bytes_ false queue_in_bytes_ false setbit_ false] {
            Queue/RED set $name $value
        }
        $ns simplex-link $edge $core $setting(rate) $setting(delay) RED
    }
    dsred {
        $ns simplex-link $edge $core $setting(rate) $setting(delay) dsRED/core
    }
    default { refuse "queue is tail, red or dsred, not `$setting(queue)`" }
}
set bottleneck [[$ns link $edge $core] queue]
$bottleneck set limit_ $setting(limit)
if {$setting(queue) eq "dsred"} {
    $bottleneck set numQueues_ 1
    $bottleneck setNumPrec 1
    $bottleneck meanPktSize $setting(packet)
    $bottleneck addPHBEntry 0 0 0
    $bottleneck configQ 0 0 $min $max $max_p $setting(weight)
}
$ns simplex-link $core $edge $setting(rate) $setting(delay) DropTail

# The receivers' counts are read from a monitor of each flow's last link.
proc arrived {i} {
    global monitors
    return [$monitors($i) set pdepartures_]
}

for {set i 0} {$i < [llength $starts]} {incr i} {
    set host [$ns node]
    set peer [$ns node]
    $ns duplex-link $host $edge $setting(access_rate) $setting(access_delay) DropTail
    $ns duplex-link $core $peer $setting(access_rate) $setting(access_delay) DropTail
    set monitors($i) [$ns monitor-queue $core $peer ""]
    if {$i < $setting(rap)} {
        set sender [new Agent/RAP]
        set receiver [new Agent/RAP]
        $sender set packetSize_ $setting(packet)
        foreach {name value} [array get rap_options] {
            $sender set $name $value
        }
        $ns attach-agent $host $sender
        $ns attach-agent $peer $receiver
        $ns connect $sender $receiver
        $ns at [lindex $starts $i] "$sender start"
    } else {
        set sender [new Agent/TCP/Newreno]
        set receiver [new Agent/TCPSink]
        $ns attach-agent $host $sender
        $ns attach-agent $peer $receiver
        $ns connect $sender $receiver
        set source [new Application/FTP]
        $source attach-agent $sender
        $ns at [lindex $starts $i] "$source start"
    }
    set senders($i) $sender
    set before($i) 0
}

proc note_warmup {} {
    global before
    foreach i [array names before] {
        set before($i) [arrived $i]
    }
}

proc take_sample {} {
    global ns setting senders
    puts [format "gap at=%.6f ipg=%.9f srtt=%.9f" [$ns now] [$senders(0) set ipg_] [$senders(0) set srtt_]]
    $ns at [expr {[$ns now] + $setting(sample)}] take_sample
}

proc report {} {
    global setting before senders
    for {set i 0} {$i < [array size before]} {incr i} {
        set kind [expr {$i < $setting(rap) ? "rap" : "tcp"}]
        puts [format "flow kind=%s packets=%.0f" $kind [expr {[arrived $i] - $before($i)}]]
    }
    exit 0
}

$ns at $setting(warmup) note_warmup
if {$setting(sample) > 0} {
    $ns at 0 take_sample
}
$ns at $setting(duration) report
$ns run
