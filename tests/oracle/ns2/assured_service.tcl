# Assured Service on a dumbbell in ns-2.35, driven through ns-2's own DiffServ module.
#
#   host i --access-- edge ====bottleneck==== core --access-- peer i        (one host pair for each flow)
#
# Each flow's marker is the dsRED/edge queue of its own access link, so a packet is marked when TCP hands it
# over, before the access link serialises it. ns-2 looks policies up linearly and holds 20 at most, hence one
# edge queue for each flow. These queues are wide open: only the bottleneck, a dsRED/core queue in RIO-C mode,
# drops. Everything on the way back is drop-tail and wide open too.
#
# Usage: ns assured_service.tcl KEY=VALUE ...     bit/s, seconds, bytes, packets; no unit suffixes.
# Keys and defaults are in `setting` below. Besides them, any key that ends in an underscore is a TCP option of
# ns-2 under ns-2's own name (windowInit_=1, minrto_=1.0, ...); without it ns-2's default holds.
#
# Sizes are IP sizes on the wire: `packet` bytes for data (packetSize_ is packet - 40), 40 for SYN and ACK.
#
# Output, one record a line, fields as key=value:
#   flow    one for each flow; see `report_flow`
#   queue   one for each code point of the bottleneck, as dsRED counts them
#   average only with sample > 0: means over the samples of the bottleneck's averages and lengths

array set setting {
    rate          20e6
    delay         0.048
    access_rate   100e6
    access_delay  0.001
    profiles      4*2e6,4*1e6,4*0.5e6,4*0.2e6,4*0.1e6,20*0
    policer       TokenBucket
    bucket        40000
    tsw_window    1.0
    in            390/694/0.02
    total         347/694/0.05
    weight        0.002
    limit         1000
    aqm           dsRED
    wait          1
    mode          RIO-C
    packet        576
    tcp           Newreno
    delayed_ack   0
    duration      100
    warmup        0
    start         0/1
    starts        {}
    seed          1
    sample        0
    headers       lean
    scheduler     Calendar
}
# access_delay: one value, or one for each group of `profiles`, separated by commas.
# profiles: groups COUNT*RATE; rate 0 is best effort (every packet OUT).
# policer: TokenBucket (uses bucket) or TSW2CM (uses tsw_window).
# aqm: dsRED, or RED for ns-2's Queue/RED, blind to color: `total` is its one set, wait its wait_, gentle_ is off.
# in, total: min/max/max_p; whole packets for min and max, since dsRED reads integers.
# mode: RIO-C (coupled) or RIO-D.
# delayed_ack: 0 acknowledges every packet; otherwise the sink's delay in seconds.
# start: FROM/TO, uniform from ns-2's own generator; starts: explicit times, one for each flow, instead.
# sample: interval at which the bottleneck's averages are read; 0 never.
# headers: lean keeps only the packet headers in use (same results, faster); all is ns-2's default.

set header_bytes 40
set in_code_point 10
set out_code_point 20
set unlimited 1000000

proc refuse {message} {
    puts stderr "assured_service.tcl: $message"
    exit 2
}

proc read_arguments {arguments} {
    global setting tcp_options
    array set tcp_options {}
    foreach argument $arguments {
        if {![regexp {^([A-Za-z0-9_]+)=(.*)$} $argument -> key value]} {
            refuse "not KEY=VALUE: `$argument`"
        }
        if {[info exists setting($key)]} {
            set setting($key) $value
        } elseif {[string match *_ $key] && $key ne "packetSize_"} {
            set tcp_options($key) $value
        } else {
            refuse "unknown key `$key`"
        }
    }
    if {![string is integer -strict $setting(seed)] || $setting(seed) <= 0} {
        refuse "seed must be a whole number above 0 (ns-2 takes 0 as the clock)"
    }
}

proc thresholds {text} {
    if {[llength [set parts [split $text /]]] != 3} {
        refuse "not MIN/MAX/MAX_P: `$text`"
    }
    return $parts
}

# One {profile access_delay} for each flow.
proc flows {} {
    global setting
    set groups [split $setting(profiles) ,]
    set delays [split $setting(access_delay) ,]
    if {[llength $delays] == 1} {
        set delays [lrepeat [llength $groups] [lindex $delays 0]]
    }
    if {[llength $delays] != [llength $groups]} {
        refuse "access_delay has [llength $delays] values for [llength $groups] groups"
    }
    set flows {}
    foreach group $groups delay $delays {
        if {![regexp {^([0-9]+)\*([0-9.eE+]+)$} $group -> count rate]} {
            refuse "not COUNT*RATE: `$group`"
        }
        for {set i 0} {$i < $count} {incr i} {
            lappend flows [list [expr {double($rate)}] $delay]
        }
    }
    return $flows
}

proc start_times {count} {
    global setting defaultRNG
    if {[llength $setting(starts)]} {
        set times [split $setting(starts) ,]
        if {[llength $times] != $count} {
            refuse "starts has [llength $times] values for $count flows"
        }
        return $times
    }
    foreach {from to} [split $setting(start) /] break
    # From a small seed the generator's first draw is 0.0003 times the seed: flow 0 would always start first.
    for {set i 0} {$i < 20} {incr i} {
        $defaultRNG uniform 0 1
    }
    set times {}
    for {set i 0} {$i < $count} {incr i} {
        lappend times [$defaultRNG uniform $from $to]
    }
    return $times
}

# TCP options go to the most derived class that has them, so that the class's own default cannot win.
proc set_tcp_options {class} {
    global tcp_options
    foreach {name value} [array get tcp_options] {
        set known 0
        foreach target [list $class Agent/TCP] {
            if {![catch {$target set $name}]} {
                $target set $name $value
                set known 1
            }
        }
        if {!$known} {
            refuse "ns-2 has no TCP option `$name` for $class"
        }
    }
}

proc configure_red {queue} {
    global setting
    foreach {min max max_p} [thresholds $setting(total)] break
    foreach {name value} [list limit_ $setting(limit) thresh_ $min maxthresh_ $max linterm_ [expr {1.0 / $max_p}] \
            q_weight_ $setting(weight) mean_pktsize_ $setting(packet) wait_ $setting(wait) gentle_ false \
            adaptive_ 0 bytes_ false queue_in_bytes_ false setbit_ false] {
        $queue set $name $value
    }
}

proc configure_bottleneck {queue} {
    global setting in_code_point out_code_point
    $queue set numQueues_ 1
    $queue set limit_ $setting(limit)
    $queue setNumPrec 2
    $queue setMREDMode $setting(mode)
    # Idle decay divides by the mean packet size, which dsRED leaves uninitialised unless told.
    $queue meanPktSize $setting(packet)
    $queue addPHBEntry $in_code_point 0 0
    $queue addPHBEntry $out_code_point 0 1
    eval $queue configQ 0 0 [thresholds $setting(in)] $setting(weight)
    eval $queue configQ 0 1 [thresholds $setting(total)] $setting(weight)
}

proc configure_marker {queue source destination profile} {
    global setting in_code_point out_code_point unlimited
    $queue set numQueues_ 1
    $queue set limit_ $unlimited
    $queue setNumPrec 2
    $queue setMREDMode DROP
    $queue meanPktSize $setting(packet)
    foreach precedence {0 1} code_point [list $in_code_point $out_code_point] {
        $queue addPHBEntry $code_point 0 $precedence
        $queue configQ 0 $precedence $unlimited $unlimited 1.0
    }
    if {$profile == 0} {
        $queue addPolicyEntry $source $destination Null $out_code_point
        $queue addPolicerEntry Null $out_code_point
        return
    }
    switch -- $setting(policer) {
        TokenBucket {
            $queue addPolicyEntry $source $destination TokenBucket $in_code_point $profile $setting(bucket)
        }
        TSW2CM {
            $queue addPolicyEntry $source $destination TSW2CM $in_code_point $profile $setting(tsw_window)
        }
        default { refuse "policer is TokenBucket or TSW2CM, not `$setting(policer)`" }
    }
    $queue addPolicerEntry $setting(policer) $in_code_point $out_code_point
}

# Data packets acknowledged so far; sequence number 0 is the SYN where there is one.
proc acknowledged {tcp} {
    set packets [expr {[$tcp set ack_] + 1}]
    if {[$tcp set syn_]} {
        incr packets -1
    }
    return [expr {max($packets, 0)}]
}

proc note_warmup {} {
    global tcps sinks acknowledged_before delivered_before
    foreach i [array names tcps] {
        set acknowledged_before($i) [acknowledged $tcps($i)]
        set delivered_before($i) [$sinks($i) set bytes_]
    }
}

proc take_sample {} {
    global ns setting bottleneck samples
    set in [$bottleneck getAverageV 0 0]
    set total [$bottleneck getAverageV 0 1]
    set waiting [$bottleneck getCurrent 0]
    incr samples(count)
    foreach {name value} [list avg_in $in avg_total $total waiting $waiting] {
        set samples($name) [expr {$samples($name) + $value}]
    }
    set samples(max_waiting) [expr {max($samples(max_waiting), $waiting)}]
    $ns at [expr {[$ns now] + $setting(sample)}] take_sample
}

proc report_flow {i profile start tcp sink} {
    global setting acknowledged_before delivered_before
    set acknowledged [expr {[acknowledged $tcp] - $acknowledged_before($i)}]
    # acked_bytes: wire bytes of the packets acknowledged after the warm-up.
    # delivered_bytes: wire bytes handed over in order by the receiver after the warm-up (the SYN's 40 included).
    # sent, retransmitted: packets of the whole run, the SYN included; a go-back-N repeat counts as retransmitted.
    # timeouts: retransmission timeouts with data outstanding. cuts: all window reductions, timeouts included.
    puts [format "flow index=%d profile_bps=%.0f start_s=%.17g acked_packets=%d acked_bytes=%.0f\
            delivered_bytes=%.0f sent=%d retransmitted=%d timeouts=%d cuts=%d" \
        $i $profile $start $acknowledged [expr {double($acknowledged) * $setting(packet)}] \
        [expr {double([$sink set bytes_]) - $delivered_before($i)}] \
        [$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_] [$tcp set ncwndcuts_]]
}

proc report {} {
    global setting bottleneck monitor tcps sinks plan starts samples in_code_point out_code_point
    set i 0
    foreach flow $plan start $starts {
        report_flow $i [lindex $flow 0] $start $tcps($i) $sinks($i)
        incr i
    }
    if {$setting(aqm) eq "RED"} {
        # Queue/RED counts nothing itself, and a queue monitor does not tell early drops from forced ones.
        puts "queue code_point=in arrived=0 early=0 forced=0"
        puts [format "queue code_point=out arrived=%.0f early=%.0f forced=0" \
            [$monitor set parrivals_] [$monitor set pdrops_]]
        exit 0
    }
    # dsRED counts a drop by average above max and one by a full queue in the same counter ("ldrops").
    foreach {name code_point} [list in $in_code_point out $out_code_point] {
        puts [format "queue code_point=%s arrived=%.0f early=%.0f forced=%.0f" $name \
            [$bottleneck getStat pkts $code_point] [$bottleneck getStat edrops $code_point] \
            [$bottleneck getStat drops $code_point]]
    }
    if {$samples(count)} {
        foreach name {avg_in avg_total waiting} {
            set samples($name) [expr {$samples($name) / $samples(count)}]
        }
        puts [format "average samples=%d avg_in=%.3f avg_total=%.3f waiting=%.3f max_waiting=%.0f" \
            $samples(count) $samples(avg_in) $samples(avg_total) $samples(waiting) $samples(max_waiting)]
    }
    exit 0
}

read_arguments $argv
if {$setting(aqm) ni {dsRED RED}} {
    refuse "aqm is dsRED or RED, not `$setting(aqm)`"
}
if {$setting(aqm) eq "RED" && $setting(sample)} {
    refuse "sample reads the averages of dsRED"
}
if {$setting(headers) eq "lean"} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
}
set ns [new Simulator]
$ns use-scheduler $setting(scheduler)
$defaultRNG seed $setting(seed)

Queue/DropTail set limit_ $unlimited
set tcp_class Agent/TCP/$setting(tcp)
set sink_class Agent/TCPSink
if {$setting(tcp) eq "Sack1"} {
    append sink_class /Sack1
}
if {$setting(delayed_ack) > 0} {
    append sink_class /DelAck
}
Agent/TCP set packetSize_ [expr {$setting(packet) - $header_bytes}]
set_tcp_options $tcp_class

set plan [flows]
set starts [start_times [llength $plan]]
array set samples {count 0 avg_in 0.0 avg_total 0.0 waiting 0.0 max_waiting 0.0}

set edge [$ns node]
set core [$ns node]
$ns simplex-link $edge $core $setting(rate) $setting(delay) [expr {$setting(aqm) eq "RED" ? "RED" : "dsRED/core"}]
$ns simplex-link $core $edge $setting(rate) $setting(delay) DropTail
set bottleneck [[$ns link $edge $core] queue]
if {$setting(aqm) eq "RED"} {
    configure_red $bottleneck
    set monitor [$ns monitor-queue $edge $core 0]
} else {
    configure_bottleneck $bottleneck
}

set i 0
foreach flow $plan start $starts {
    foreach {profile access_delay} $flow break
    set host [$ns node]
    set peer [$ns node]
    $ns simplex-link $host $edge $setting(access_rate) $access_delay dsRED/edge
    $ns simplex-link $edge $host $setting(access_rate) $access_delay DropTail
    $ns duplex-link $core $peer $setting(access_rate) $access_delay DropTail
    configure_marker [[$ns link $host $edge] queue] [$host id] [$peer id] $profile

    set tcps($i) [new $tcp_class]
    set sinks($i) [new $sink_class]
    if {$setting(delayed_ack) > 0} {
        $sinks($i) set interval_ $setting(delayed_ack)
    }
    $tcps($i) set fid_ $i
    $ns attach-agent $host $tcps($i)
    $ns attach-agent $peer $sinks($i)
    $ns connect $tcps($i) $sinks($i)
    set source [new Application/FTP]
    $source attach-agent $tcps($i)
    $ns at $start "$source start"
    set acknowledged_before($i) 0
    set delivered_before($i) 0
    incr i
}

if {$setting(warmup) > 0} {
    $ns at $setting(warmup) note_warmup
}
if {$setting(sample) > 0} {
    $ns at $setting(sample) take_sample
}
$ns at $setting(duration) report
$ns run
