"""The settings on which perhop is held against ns-2's DiffServ module and its TCP."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle import ns2

RED = replace(
    ns2.Ns2Setting(),
    aqm="RED",
    groups=(ns2.Group(10, 0.0),),
    rate_bps=10e6,
    tcp="Reno",
    total_thresholds=ns2.Thresholds(5, 15, 0.1),
    limit_packets=200,
    duration_s=50.0,
)
SETTINGS = {
    "table 1": ns2.Ns2Setting(),
    "table 1 after its first 20 s": replace(ns2.Ns2Setting(), warmup_s=20.0),
    "window-limited": replace(ns2.Ns2Setting(), window_packets=20),
    "1500-byte packets": replace(ns2.Ns2Setting(), packet_bytes=1500),
    "Reno, no handshake, initial window 1": replace(
        ns2.Ns2Setting(),
        tcp="Reno",
        handshake=False,
        delay_growth=False,
        initial_window=1,
        limited_transmit=False,
    ),
    # Timeouts rule here: about fifty for each flow.
    "tight thresholds": replace(ns2.Ns2Setting(), total_thresholds=ns2.Thresholds(10, 30, 0.01)),
    # A few flows on a plain queue: the senders' recovery decides alone.
    "one flow, drop-tail": replace(
        ns2.Ns2Setting(),
        groups=(ns2.Group(1, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
    ),
    "five flows, drop-tail, delayed ACKs": replace(
        ns2.Ns2Setting(),
        groups=(ns2.Group(5, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
        delayed_ack_s=0.1,
    ),
    "SACK": replace(ns2.Ns2Setting(), tcp="Sack1"),
    "SACK, tight thresholds": replace(
        ns2.Ns2Setting(), tcp="Sack1", total_thresholds=ns2.Thresholds(10, 30, 0.01)
    ),
    "SACK, one flow, drop-tail": replace(
        ns2.Ns2Setting(),
        tcp="Sack1",
        groups=(ns2.Group(1, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
    ),
    "SACK, five flows, drop-tail, delayed ACKs": replace(
        ns2.Ns2Setting(),
        tcp="Sack1",
        groups=(ns2.Group(5, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
        delayed_ack_s=0.1,
    ),
    "NewReno of 1998": ns2.NS_1998,
    "NewReno of 1998, window 100": replace(ns2.NS_1998, window_packets=100),
    "NewReno of 1998, window 100, tight thresholds": replace(
        ns2.NS_1998, window_packets=100, total_thresholds=ns2.Thresholds(10, 30, 0.01)
    ),
    "slow-but-steady, tight thresholds": replace(
        ns2.Ns2Setting(), impatient=False, total_thresholds=ns2.Thresholds(10, 30, 0.01)
    ),
    "deflation to ssthresh, one flow, drop-tail": replace(
        ns2.Ns2Setting(),
        groups=(ns2.Group(1, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
        impatient=False,
        deflates=False,
    ),
    "Yeom and Reddy, 60 %": ns2.YEOM,
    "Yeom and Reddy, 90 %": replace(ns2.YEOM, rate_bps=8e6),
    "Yeom and Reddy, 60 %, SACK": replace(ns2.YEOM, tcp="Sack1"),
    "Yeom and Reddy, 60 %, window 64": replace(ns2.YEOM, window_packets=64),
    "Yeom and Reddy, 60 %, window 1000": replace(ns2.YEOM, window_packets=1000),
    "Yeom and Reddy, 120 %, RIO-D": replace(ns2.YEOM, rate_bps=6e6, coupled=False),
    # ns-2's Queue/RED, whose average is often above min while the queue is empty.
    "RED, tight thresholds": RED,
    "RED, tight thresholds, no wait": replace(RED, red_wait=False),
}
