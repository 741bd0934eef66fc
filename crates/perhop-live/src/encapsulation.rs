//! Headers between the addresses of an Ethernet frame and its IP packet: VLAN tags (IEEE 802.1Q), stacked
//! ones (QinQ, IEEE 802.1ad), MPLS label stacks (RFC 3032) and PPPoE sessions (RFC 2516).
//!
//! A device moves them into the packet's [`Head`], so that all else sees an IP packet. The classifier reads
//! them there, and they leave as they came, apart from [`remark`]. Every function is total: whatever the
//! bytes, it returns.

use std::ops::{Range, RangeInclusive};

use crate::buffers::Head;
use crate::spec::Remark;
use crate::wire;

/// The place in a [`Head`] of the VLAN tag that the kernel removed from the frame (tag protocol and tag);
/// zeros if there was none.
pub const TAG: Range<usize> = 22..26;
/// The place of the Ethernet type in a [`Head`].
pub const TYPE: Range<usize> = 26..28;
/// The place in a [`Head`] of the headers between the Ethernet type and the IP packet.
const HEADERS: Range<usize> = 28..60;
/// The place in a [`Head`] of the length of these headers.
const LENGTH: usize = 60;

/// Tag protocols: 802.1Q, 802.1ad, and what stacked tags had before 802.1ad.
const TAG_PROTOCOLS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Unicast, and multicast or upstream-assigned labels (RFC 5332).
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
const IP: [u16; 2] = [0x0800, 0x86dd];

/// The longest payload of an Ethernet frame that senders fill up with padding.
const PADDED: usize = 46;

/// What a classifier reads of the headers before an IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encapsulation {
    /// The innermost VLAN tag.
    pub tag: Option<Tag>,
    /// The outermost VLAN tag, where there are several.
    pub outer_tag: Option<Tag>,
    /// The topmost entry of the label stack.
    pub label: Option<LabelEntry>,
    /// The PPPoE session.
    pub session: Option<u16>,
}

/// A VLAN tag: priority code point, drop eligible indicator, VLAN identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u16);

impl Tag {
    /// Returns the VLAN identifier; 0 in a frame that is only priority-tagged.
    pub const fn vlan(self) -> u16 {
        self.0 & 0x0fff
    }

    /// Returns the priority code point.
    pub const fn priority(self) -> u8 {
        (self.0 >> 13) as u8
    }
}

/// An entry of a label stack: label, traffic class, bottom of stack, time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelEntry(u32);

impl LabelEntry {
    /// Returns the label.
    pub const fn label(self) -> u32 {
        self.0 >> 12
    }

    /// Returns the traffic class (RFC 5462).
    pub const fn traffic_class(self) -> u8 {
        (self.0 >> 9) as u8 & 7
    }

    const fn is_last(self) -> bool {
        self.0 >> 8 & 1 == 1
    }
}

/// Conditions on the headers before an IP packet. A packet without such a header does not meet them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enclosure {
    /// The identifier of the innermost VLAN tag.
    pub vlan: Option<RangeInclusive<u16>>,
    /// The priority code point of the innermost VLAN tag.
    pub priority: Option<RangeInclusive<u8>>,
    /// The identifier of the outermost VLAN tag of several.
    pub outer_vlan: Option<RangeInclusive<u16>>,
    /// The priority code point of the outermost VLAN tag of several.
    pub outer_priority: Option<RangeInclusive<u8>>,
    /// The topmost label.
    pub label: Option<RangeInclusive<u32>>,
    /// The traffic class of the topmost label.
    pub traffic_class: Option<RangeInclusive<u8>>,
    /// The PPPoE session.
    pub session: Option<RangeInclusive<u16>>,
}

impl Enclosure {
    /// Returns whether the headers meet every condition.
    pub fn encloses(&self, headers: &Encapsulation) -> bool {
        let Encapsulation { tag, outer_tag, label, session } = *headers;
        within(self.vlan.as_ref(), tag.map(Tag::vlan))
            && within(self.priority.as_ref(), tag.map(Tag::priority))
            && within(self.outer_vlan.as_ref(), outer_tag.map(Tag::vlan))
            && within(self.outer_priority.as_ref(), outer_tag.map(Tag::priority))
            && within(self.label.as_ref(), label.map(LabelEntry::label))
            && within(self.traffic_class.as_ref(), label.map(LabelEntry::traffic_class))
            && within(self.session.as_ref(), session)
    }
}

fn within<T: PartialOrd>(wanted: Option<&RangeInclusive<T>>, found: Option<T>) -> bool {
    wanted.is_none_or(|wanted| found.is_some_and(|found| wanted.contains(&found)))
}

impl Encapsulation {
    /// Reads the headers that a device has put into a head.
    #[inline]
    pub fn of(head: &Head) -> Self {
        let mut found = Self::default();
        if head[TAG] != [0; 4] || head[LENGTH] != 0 {
            found.read_head(head);
        }
        found
    }

    #[cold]
    fn read_head(&mut self, head: &Head) {
        let [high, low] = [head[TYPE.start], head[TYPE.start + 1]];
        if head[TAG] != [0; 4] {
            self.add(Tag(u16::from_be_bytes([head[TAG.start + 2], head[TAG.start + 3]])));
        }
        // Whether an IP packet follows is known: it is why the headers are there.
        let length = usize::from(head[LENGTH]).min(HEADERS.len());
        let _ = self.read(u16::from_be_bytes([high, low]), &head[HEADERS][..length]);
    }

    /// Returns the bits that tell apart networks whose addresses may overlap.
    pub(crate) fn network(&self) -> u64 {
        let vlan = |tag: Option<Tag>| tag.map_or(0, |tag| u64::from(tag.vlan()) + 1);
        let label = self.label.map_or(0, |entry| u64::from(entry.label()) + 1);
        let session = self.session.map_or(0, |session| u64::from(session) + 1);
        vlan(self.tag) ^ vlan(self.outer_tag) << 13 ^ label << 26 ^ session << 47
    }

    fn add(&mut self, tag: Tag) {
        let before = self.tag.replace(tag);
        self.outer_tag = self.outer_tag.or(before);
    }

    /// Reads headers that begin behind this Ethernet type. Returns their length and what the last of them
    /// announces; `None` if that cannot be IP.
    fn read(&mut self, mut kind: u16, bytes: &[u8]) -> Option<(usize, Announced)> {
        let mut length = 0;
        while TAG_PROTOCOLS.contains(&kind) {
            let [tag, next] = [word(bytes, length)?, word(bytes, length + 2)?];
            self.add(Tag(tag));
            (kind, length) = (next, length + 4);
        }
        if IP.contains(&kind) {
            return Some((length, Announced::Ip));
        }
        if MPLS.contains(&kind) {
            loop {
                let [high, low] = [word(bytes, length)?, word(bytes, length + 2)?];
                let entry = LabelEntry(u32::from(high) << 16 | u32::from(low));
                self.label.get_or_insert(entry);
                length += 4;
                if entry.is_last() {
                    return Some((length, Announced::Unknown));
                }
            }
        }
        // Version and type, code, session, length, protocol of PPP: IPv4 or IPv6.
        let is_data = kind == PPPOE_SESSION && word(bytes, length)? == 0x1100;
        if is_data && matches!(word(bytes, length + 6)?, 0x0021 | 0x0057) {
            self.session = word(bytes, length + 2);
            return Some((length + 8, Announced::Ip));
        }
        None
    }
}

/// What the last header before an IP packet says of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    Ip,
    /// Labels do not say what they carry.
    Unknown,
}

fn word(bytes: &[u8], place: usize) -> Option<u16> {
    bytes.get(place..place + 2).map(|word| u16::from_be_bytes([word[0], word[1]]))
}

/// Why a frame carries no IP packet that a queue can judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPacket {
    /// The frame is of another protocol, such as ARP.
    Other,
    /// The frame has labels, a session or several tags, behind which no IP packet is found.
    Unread,
}

/// Moves the headers between Ethernet type and IP packet from the front of a frame's `payload` into its head,
/// and returns how many bytes they had. The head has the type and the tag that the kernel took out.
///
/// # Errors
/// There is no IP packet. Then payload and head are as they were, without headers in the head.
#[inline]
pub fn detach(head: &mut Head, payload: &mut [u8]) -> Result<usize, NoPacket> {
    head[LENGTH] = 0;
    let kind = u16::from_be_bytes([head[TYPE.start], head[TYPE.start + 1]]);
    if IP.contains(&kind) { Ok(0) } else { detach_some(kind, head, payload) }
}

#[cold]
fn detach_some(kind: u16, head: &mut Head, payload: &mut [u8]) -> Result<usize, NoPacket> {
    let known = |kind| TAG_PROTOCOLS.contains(&kind) || MPLS.contains(&kind) || kind == PPPOE_SESSION;
    let none = if known(kind) { NoPacket::Unread } else { NoPacket::Other };
    let (length, announced) = Encapsulation::default().read(kind, payload).ok_or(none)?;
    if length > HEADERS.len() || announced == Announced::Unknown && !is_packet(&payload[length..], length) {
        return Err(NoPacket::Unread);
    }
    head[HEADERS][..length].copy_from_slice(&payload[..length]);
    head[LENGTH] = length as u8;
    payload.copy_within(length.., 0);
    Ok(length)
}

/// Returns whether bytes behind a label stack are an IP packet and nothing else. The first four bits alone do
/// not say so: an Ethernet frame in a pseudowire may have the same (RFC 4928).
fn is_packet(bytes: &[u8], before: usize) -> bool {
    let padded = before + bytes.len() <= PADDED;
    wire::parse(bytes).is_ok_and(|fields| usize::from(fields.length) == bytes.len() || padded)
}

/// Returns the Ethernet type and the headers behind it, as they leave in front of the IP packet.
#[inline]
pub fn attached(head: &Head) -> &[u8] {
    &head[TYPE.start..HEADERS.start + usize::from(head[LENGTH]).min(HEADERS.len())]
}

/// Writes a priority code point into the outermost VLAN tag and a traffic class into the topmost label, where
/// there are such.
#[inline]
pub fn remark(head: &mut Head, remark: Remark) {
    if remark != Remark::default() {
        write(head, remark);
    }
}

#[cold]
fn write(head: &mut Head, Remark { priority, traffic_class }: Remark) {
    let is_tag =
        |head: &Head, place| TAG_PROTOCOLS.contains(&u16::from_be_bytes([head[place], head[place + 1]]));
    let tag = if head[TAG] == [0; 4] {
        (head[LENGTH] > 0 && is_tag(head, TYPE.start)).then_some(HEADERS.start)
    } else {
        Some(TAG.start + 2)
    };
    if let (Some(place), Some(priority)) = (tag, priority) {
        head[place] = head[place] & 0x1f | (priority & 7) << 5;
    }
    // Labels follow the tags.
    let mut place = TYPE.start;
    while place + 4 < HEADERS.end && is_tag(head, place) {
        place += 4;
    }
    let kind = u16::from_be_bytes([head[place], head[place + 1]]);
    if let Some(class) = traffic_class.filter(|_| head[LENGTH] > 0 && MPLS.contains(&kind)) {
        head[place + 4] = head[place + 4] & 0xf1 | (class & 7) << 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::HEAD;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn ip() -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(7, 77)
            .write(&mut packet, &[9; 40])
            .unwrap();
        packet
    }

    fn both(priority: u8, traffic_class: u8) -> Remark {
        Remark { priority: Some(priority), traffic_class: Some(traffic_class) }
    }

    fn head(kind: u16) -> Head {
        let mut head = [0; HEAD];
        head[TYPE].copy_from_slice(&kind.to_be_bytes());
        head
    }

    /// Takes headers off and returns what they say, after having them put back.
    fn taken(kind: u16, headers: &[u8]) -> Result<Encapsulation, NoPacket> {
        let mut head = head(kind);
        let mut payload = [headers, &ip()].concat();
        let length = detach(&mut head, &mut payload)?;
        assert_eq!(length, headers.len());
        payload.truncate(payload.len() - length);
        assert_eq!(payload, ip());
        assert_eq!(attached(&head), [&kind.to_be_bytes(), headers].concat());
        Ok(Encapsulation::of(&head))
    }

    /// The formats of the standards, byte by byte.
    #[test]
    fn each_header_is_read_as_its_standard_says() {
        assert_eq!(taken(0x0800, &[]), Ok(Encapsulation::default()));
        // IEEE 802.1Q, 9.6: priority 5, not drop eligible, VLAN 100, then the type.
        let one = taken(0x8100, &[0xa0, 0x64, 0x08, 0x00]).unwrap();
        assert_eq!((one.tag, one.outer_tag), (Some(Tag(0xa064)), None));
        assert_eq!(one.tag.map(|tag| (tag.vlan(), tag.priority())), Some((100, 5)));
        // IEEE 802.1ad: a service tag before a customer tag.
        let two = taken(0x88a8, &[0xf0, 0x07, 0x81, 0x00, 0x2f, 0xff, 0x86, 0xdd]).unwrap();
        assert_eq!(two.outer_tag.map(|tag| (tag.vlan(), tag.priority())), Some((7, 7)));
        assert_eq!(two.tag.map(|tag| (tag.vlan(), tag.priority())), Some((4095, 1)));
        // RFC 3032, section 2.1: label 20 bits, traffic class 3, bottom of stack 1, time to live 8.
        let labels = taken(0x8847, &[0x12, 0x34, 0x5a, 64, 0x00, 0x01, 0x01, 63]).unwrap();
        assert_eq!(labels.label.map(|entry| (entry.label(), entry.traffic_class())), Some((0x12345, 5)));
        // RFC 2516, section 4: version 1, type 1, code 0, session, length; RFC 1661: protocol.
        let session = taken(0x8864, &[0x11, 0, 0x12, 0x34, 0, 70, 0x00, 0x21]).unwrap();
        assert_eq!(session.session, Some(0x1234));
        let all = taken(0x8100, &[0, 9, 0x88, 0x64, 0x11, 0, 0, 1, 0, 70, 0, 0x57]).unwrap();
        assert_eq!((all.tag, all.session), (Some(Tag(9)), Some(1)));
    }

    #[test]
    fn frames_without_a_packet_stay_as_they_are() {
        let deep = [0x00, 0x01, 0x00, 64].repeat(8);
        for (kind, payload, why) in [
            (0x0806, vec![0; 28], NoPacket::Other),
            (0x8863, vec![0x11, 9, 0, 0, 0, 0], NoPacket::Other),
            (0x8100, vec![0, 5, 0x08, 0x06, 0, 1], NoPacket::Unread),
            (0x8100, vec![0, 5], NoPacket::Unread),
            (0x8864, [&[0x11, 0, 0, 1, 0, 4, 0xc0, 0x21], &[0; 4][..]].concat(), NoPacket::Unread),
            (0x8864, [&[0x21, 0, 0, 1, 0, 4, 0x00, 0x21], &ip()[..]].concat(), NoPacket::Unread),
            // A pseudowire: an Ethernet frame to 45:…
            (0x8847, [&[0, 0, 0x11, 64, 0x45, 0][..], &[1; 60]].concat(), NoPacket::Unread),
            (0x8847, [&deep[..], &[0, 0, 0x11, 64], &ip()].concat(), NoPacket::Unread),
            (0x8847, deep[..30].to_vec(), NoPacket::Unread),
        ] {
            let (mut head, mut left) = (head(kind), payload.clone());
            head[LENGTH] = 12;
            assert_eq!(detach(&mut head, &mut left), Err(why), "{kind:x} {payload:?}");
            assert_eq!((left, attached(&head)), (payload, &kind.to_be_bytes()[..]));
        }
    }

    #[test]
    fn the_tag_that_the_kernel_took_out_is_the_outer_one() {
        let mut head = head(0x8100);
        head[TAG].copy_from_slice(&[0x88, 0xa8, 0x60, 0x07]);
        let mut payload = [&[0x20, 0x05, 0x08, 0x00], &ip()[..]].concat();
        assert_eq!(detach(&mut head, &mut payload), Ok(4));
        let found = Encapsulation::of(&head);
        assert_eq!((found.outer_tag, found.tag), (Some(Tag(0x6007)), Some(Tag(0x2005))));
        remark(&mut head, both(7, 1));
        let found = Encapsulation::of(&head);
        assert_eq!((found.outer_tag, found.tag), (Some(Tag(0xe007)), Some(Tag(0x2005))));
    }

    #[test]
    fn priority_and_traffic_class_alone_are_rewritten() {
        let mut head = head(0x8100);
        let headers = [0x1f, 0xff, 0x88, 0x47, 0xff, 0xff, 0xf0, 9, 0, 0, 0x11, 9];
        let mut payload = [&headers[..], &ip()].concat();
        detach(&mut head, &mut payload).unwrap();
        remark(&mut head, both(5, 3));
        assert_eq!(attached(&head)[2..], [0xbf, 0xff, 0x88, 0x47, 0xff, 0xff, 0xf6, 9, 0, 0, 0x11, 9]);
        let mut bare = [0; HEAD];
        bare[TYPE].copy_from_slice(&[0x08, 0]);
        let before = bare;
        remark(&mut bare, both(7, 7));
        assert_eq!(bare, before);
    }

    #[test]
    fn a_condition_on_a_header_that_is_not_there_is_not_met() {
        let any = Enclosure { vlan: Some(0..=4095), ..Enclosure::default() };
        let tagged = Encapsulation { tag: Some(Tag(5)), ..Encapsulation::default() };
        assert!(any.encloses(&tagged) && !any.encloses(&Encapsulation::default()));
        assert!(Enclosure::default().encloses(&tagged));
        let outer = Enclosure { outer_vlan: Some(5..=5), ..Enclosure::default() };
        assert!(!outer.encloses(&tagged), "a single tag is no outer one");
    }

    proptest! {
        #[test]
        fn any_frame_comes_back_as_it_was(
            kind in prop_oneof![Just(0x8100_u16), Just(0x88a8), Just(0x8847), Just(0x8864), any::<u16>()],
            tag in prop_oneof![Just([0; 4]), Just([0x81, 0, 0xa0, 5])],
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), Just(0x81), Just(0x88), Just(0x47), Just(0x11), Just(0)], 0..80,
            ),
            with_packet in any::<bool>(),
        ) {
            let frame = if with_packet { [bytes, ip()].concat() } else { bytes };
            let (mut head, mut payload) = (head(kind), frame.clone());
            head[TAG].copy_from_slice(&tag);
            let length = detach(&mut head, &mut payload).unwrap_or(0);
            let found = Encapsulation::of(&head);
            prop_assert_eq!(found.tag.is_some(), tag != [0; 4] || length > 0 && TAG_PROTOCOLS.contains(&kind));
            let (outer, label) = (found.outer_tag.or(found.tag), found.label);
            let (priority, traffic_class) = (outer.map(Tag::priority), label.map(LabelEntry::traffic_class));
            remark(&mut head, Remark { priority, traffic_class });
            let back = [attached(&head), &payload[..frame.len() - length]].concat();
            prop_assert_eq!(back, [&kind.to_be_bytes()[..], &frame].concat());
        }
    }
}
