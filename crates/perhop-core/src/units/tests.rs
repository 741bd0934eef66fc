use super::*;
use proptest::prelude::*;

#[test]
fn reads_what_users_of_the_field_write() {
    assert_eq!("20Mbps".parse::<Bitrate>().unwrap().as_bps(), 20_000_000);
    assert_eq!("0.5Mbps".parse::<Bitrate>().unwrap().as_bps(), 500_000);
    assert_eq!("48ms".parse::<Duration>().unwrap(), Duration::from_millis(48));
    assert_eq!("868p".parse::<Depth>().unwrap(), Depth::Packets(868));
    assert_eq!("40kB".parse::<Depth>().unwrap(), Depth::Bytes(40_000));
    let set = "390/694/0.02".parse::<Thresholds>().unwrap();
    assert_eq!((set.min(), set.max(), set.max_p(), set.unit()), (390.0, 694.0, 0.02, Unit::Packets));
    assert_eq!("40kB/80kB/0.1".parse::<Thresholds>().unwrap().unit(), Unit::Bytes);
}

#[test]
fn reads_units_as_tables_print_them() {
    for (text, canonical) in [
        ("100 Mbit/s", "100Mbps"),
        ("2.5Gbit/s", "2.5Gbps"),
        ("64 kbit/s", "64kbps"),
        ("9600 bit/s", "9.6kbps"),
    ] {
        assert_eq!(text.parse::<Bitrate>().unwrap().to_string(), canonical);
    }
    for text in ["50 us", "50 µs", "50 μs"] {
        assert_eq!(text.parse::<Duration>().unwrap().to_string(), "50us");
    }
    let depths =
        ["868 packets", "1 packet", "1500 bytes"].map(|text| text.parse::<Depth>().unwrap().to_string());
    assert_eq!(depths, ["868p", "1p", "1.5kB"]);
    assert_eq!("30 packets/90 packets/0.1".parse::<Thresholds>().unwrap().to_string(), "30/90/0.1");
    let refused = |text: &str| text.parse::<Bitrate>().unwrap_err().to_string();
    assert!(refused("100 mbit/s").contains("ambiguous beside Gbps, Mbps, kbps, bps; write 100Mbps"));
    assert!(refused("100 packets").contains("has the unit `packets`, which is not one of"));
    assert!(refused("100 MB/s").contains("which is not one of"), "bytes in a second");
}

#[test]
fn a_rate_as_tc_and_routers_have_it_is_refused_with_what_it_means() {
    for (text, meant) in [
        ("10mbit", "10Mbps"),
        ("1gbit", "1Gbps"),
        ("512kbit", "512kbps"),
        ("10 MBit/s", "10Mbps"),
        ("10Mb/s", "10Mbps"),
        ("2.5Gb", "2.5Gbps"),
        ("1G", "1Gbps"),
        ("10M", "10Mbps"),
        ("100k", "100kbps"),
        ("9600 bits/s", "9600bps"),
        ("10,5 Mbit/s", "10.5Mbps"),
        ("10,5mbit", "10.5Mbps"),
    ] {
        let problem = text.parse::<Bitrate>().unwrap_err().to_string();
        assert!(problem.ends_with(&format!("; write {meant}")), "{problem}");
    }
    for text in ["10mbps", "10MBps", "10MB/s", "10", "1,000 Mbps", "1 000 Mbps", "10 parsecs", "1,2,3Mbps"] {
        let problem = text.parse::<Bitrate>().unwrap_err().to_string();
        assert!(problem.ends_with("; write a rate such as 20Mbps"), "{problem}");
    }
    let time = |text: &str| text.parse::<Duration>().unwrap_err().to_string();
    assert!(time("1,5ms").contains("has `1,5` where a number such as 1.5 or .5 must stand"));
}

#[test]
fn frequencies_are_counted_in_seconds_minutes_or_hours() {
    for (text, per_second, shown) in [
        ("40/s", 40.0, "40/s"),
        ("0.5/s", 0.5, "30/min"),
        ("90 /min", 1.5, "90/min"),
        ("1/h", 1.0 / 3600.0, "1/h"),
        ("0.001/min", 1.0 / 60_000.0, "0.060/h"),
    ] {
        let frequency = text.parse::<Frequency>().unwrap();
        assert_eq!((frequency.per_second(), frequency.to_string()), (per_second, shown.to_owned()));
    }
}

#[test]
fn refuses_with_the_reason_and_the_remedy() {
    let rate = |text: &str| text.parse::<Bitrate>().unwrap_err().to_string();
    assert!(rate("20mbps").contains("ambiguous") && rate("20mbps").contains("20Mbps"));
    assert!(rate("20").contains("no unit"));
    assert!(rate("-20Mbps").contains("negative"));
    assert!(rate("0Mbps").contains("above zero"));
    assert!(rate("1.5bps").contains("whole number"));
    assert!(rate("99999999999Gbps").contains("too large"));
    assert!(rate("Mbps").contains("no number"));
    assert!("1..5s".parse::<Duration>().is_err());
    assert!("1.s".parse::<Duration>().is_err());
    let set = |text: &str| text.parse::<Thresholds>().unwrap_err().to_string();
    assert!(set("60/30/0.1").contains("min 60 is above max 30"));
    assert!(set("30/60/1.5").contains("between 0 and 1"));
    assert!(set("30/60").contains("min/max/max_p"));
    assert!(set("30p/60kB/0.1").contains("both"));
}

proptest! {
    #[test]
    fn text_round_trips(value in prop_oneof![Just(1), 1..u64::MAX / 2]) {
        prop_assert_eq!(Bitrate(value).to_string().parse::<Bitrate>().unwrap(), Bitrate(value));
        prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
        prop_assert_eq!(Frequency(value).to_string().parse::<Frequency>().unwrap(), Frequency(value));
        let span = Duration::from_nanos(value);
        prop_assert_eq!(span.to_string().parse::<Duration>().unwrap(), span);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,12}") {
        let _ = text.parse::<Bitrate>();
        let _ = text.parse::<Thresholds>();
        let _ = text.parse::<Depth>();
    }
}

#[test]
fn sizes_and_times_at_a_rate_by_hand() {
    let rate = |bps| Bitrate::from_bps(bps).unwrap();
    for (bps, bytes, nanos) in [
        (8_000_000, 1000, 1_000_000),
        (1_000_000_000, 125, 1000),
        // More nanoseconds than a 64-bit product of bits and 10^9 holds.
        (8_000_000_000, 3_000_000_000, 3_000_000_000),
    ] {
        let (bytes, time) = (Bytes::new(bytes), Duration::from_nanos(nanos));
        assert_eq!((rate(bps).time_of(bytes), rate(bps).bytes_in(time)), (time, bytes));
    }
    // Both are rounded down.
    assert_eq!(rate(3).time_of(Bytes::new(1)).as_nanos(), 2_666_666_666);
    assert_eq!(rate(8_000_000).bytes_in(Duration::from_nanos(1999)).get(), 1);
    // What does not fit is the most that does.
    assert_eq!(rate(1).time_of(Bytes::new(u64::MAX / 8)).as_nanos(), u64::MAX);
    assert_eq!(rate(1).time_of(Bytes::new(u64::MAX)).as_nanos(), u64::MAX);
    assert_eq!(rate(u64::MAX).time_of(Bytes::new(u64::MAX)).as_nanos(), 8_000_000_000);
    assert_eq!(rate(u64::MAX).bytes_in(Duration::from_nanos(u64::MAX)).get(), u64::MAX);
}
