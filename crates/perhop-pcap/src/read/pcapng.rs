//! pcapng: blocks of several types, each with its length before and behind it (draft-ietf-opsawg-pcapng).

use std::io::Read;

use super::source::{Order, Source};
use super::{Found, Problem, damaged, keep};
use crate::numbers::{
    BYTE_ORDER, ENHANCED_PACKET, IF_NAME, IF_TSOFFSET, IF_TSRESOL, INTERFACE, PACKET, SECTION, SIMPLE_PACKET,
};

/// The most interfaces of a section: their descriptions are all that is kept of a file.
const MOST_INTERFACES: usize = 4096;

/// The longest name of an interface that is kept.
const LONGEST_NAME: u16 = 256;

/// What the present section of a pcapng file says.
#[derive(Debug)]
pub(super) struct PcapNg {
    order: Order,
    interfaces: Vec<Interface>,
}

/// An interface that packets were captured at.
#[derive(Clone, Debug)]
struct Interface {
    name: Option<Box<str>>,
    link_type: u16,
    resolution: Resolution,
    /// Seconds that are added to its times.
    offset: i64,
}

/// The unit of an interface's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// 10 to the minus this power of a second.
    Decimal(u32),
    /// 2 to the minus this power of a second.
    Binary(u32),
}

impl Resolution {
    /// Reads the option `if_tsresol`, if any 64-bit time can be of this resolution.
    fn read(option: u8) -> Option<Self> {
        let power = u32::from(option & 0x7f);
        match option >> 7 {
            0 if power <= 19 => Some(Self::Decimal(power)),
            1 if power <= 63 => Some(Self::Binary(power)),
            _ => None,
        }
    }

    /// Nanoseconds, rounded down.
    fn nanos(self, units: u64) -> i128 {
        let units = u128::from(units);
        let nanos = match self {
            Self::Decimal(power @ ..=9) => units * 10_u128.pow(9 - power),
            Self::Decimal(power) => units / 10_u128.pow(power - 9),
            Self::Binary(power) => (units * 1_000_000_000) >> power,
        };
        nanos.cast_signed()
    }
}

impl PcapNg {
    /// Reads the first section's header, behind the type of its block.
    pub(super) fn begin<R: Read>(source: &mut Source<R>) -> Result<Self, Problem> {
        let length = source.array()?;
        Ok(Self { order: section(source, length)?, interfaces: Vec::new() })
    }

    /// Reads the next packet. Blocks of other types are passed over.
    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
        kept: &mut [u8],
    ) -> Result<Option<Found>, Problem> {
        while !source.is_over()? {
            let kind = source.array()?;
            let length = source.array()?;
            if kind == SECTION.to_be_bytes() {
                self.order = section(source, length)?;
                self.interfaces.clear();
                continue;
            }
            let kind = self.order.u32(kind);
            let length = self.order.u32(length);
            let body = body_of(length)?;
            let found = match kind {
                INTERFACE => {
                    self.describe(source, body)?;
                    None
                }
                PACKET | ENHANCED_PACKET => Some(self.packet(source, kept, body, kind)?),
                SIMPLE_PACKET => Some(self.simple_packet(source, kept, body)?),
                _ => {
                    source.skip(u64::from(body))?;
                    None
                }
            };
            close(source, self.order, length)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the name of each interface of the present section, if it has one.
    pub(super) fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.interfaces.iter().map(|interface| interface.name.as_deref())
    }

    /// Returns the name of this interface of the present section, if it has one.
    pub(super) fn name(&self, interface: u32) -> Option<&str> {
        self.interfaces.get(interface as usize)?.name.as_deref()
    }

    /// Reads the description of an interface.
    fn describe<R: Read>(&mut self, source: &mut Source<R>, body: u32) -> Result<(), Problem> {
        if body < 8 {
            return damaged(format!("the description of an interface has {body} bytes instead of 8 or more"));
        }
        if self.interfaces.len() == MOST_INTERFACES {
            return damaged(format!("a section has more than {MOST_INTERFACES} interfaces"));
        }
        let [a, b, ..] = source.array::<8>()?;
        let mut interface = Interface {
            name: None,
            link_type: self.order.u16([a, b]),
            resolution: Resolution::Decimal(6),
            offset: 0,
        };
        let mut left = body - 8;
        while left >= 4 {
            let [a, b, c, d] = source.array()?;
            let (option, length) = (self.order.u16([a, b]), self.order.u16([c, d]));
            let padded = u32::from(length).next_multiple_of(4);
            left -= 4;
            if option == 0 {
                break;
            }
            if padded > left {
                return damaged("an option of an interface is longer than its block");
            }
            left -= padded;
            match (option, length) {
                (IF_TSRESOL, 1) => {
                    let [resolution, ..] = source.array::<4>()?;
                    let Some(resolution) = Resolution::read(resolution) else {
                        return damaged(format!(
                            "times of the resolution 0x{resolution:02x} (`if_tsresol`) do not fit into 64 bits"
                        ));
                    };
                    interface.resolution = resolution;
                }
                (IF_TSOFFSET, 8) => {
                    let [first, second] = self.order.words::<2>(&source.array::<8>()?);
                    let (high, low) =
                        if self.order == Order::Big { (first, second) } else { (second, first) };
                    interface.offset = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                }
                (IF_NAME, ..=LONGEST_NAME) => {
                    let mut name = vec![0; padded as usize];
                    source.fill(&mut name)?;
                    name.truncate(usize::from(length));
                    interface.name = Some(String::from_utf8_lossy(&name).into());
                }
                (IF_TSRESOL | IF_TSOFFSET, _) => {
                    return damaged("an option of an interface for its times has a wrong length");
                }
                _ => source.skip(u64::from(padded))?,
            }
        }
        source.skip(u64::from(left))?;
        self.interfaces.push(interface);
        Ok(())
    }

    /// Reads a packet, an enhanced one or one of the obsolete kind, whose interface and losses share a word.
    fn packet<R: Read>(
        &self,
        source: &mut Source<R>,
        kept: &mut [u8],
        body: u32,
        kind: u32,
    ) -> Result<Found, Problem> {
        let Some(room) = body.checked_sub(20) else {
            return damaged(format!("the block of the next packet has {body} bytes instead of 20 or more"));
        };
        let head = source.array::<20>()?;
        let [word, high, low, captured, length] = self.order.words(&head);
        let number = if kind == PACKET { u32::from(self.order.u16([head[0], head[1]])) } else { word };
        if captured > room {
            return damaged(format!(
                "the next packet would have {captured} bytes in a block with room for {room}"
            ));
        }
        let Some(&Interface { link_type, resolution, offset, .. }) = self.interfaces.get(number as usize)
        else {
            return damaged(format!(
                "the next packet is of interface {number}, and the section describes {}",
                self.interfaces.len()
            ));
        };
        keep(source, kept, captured)?;
        source.skip(u64::from(room - captured))?;
        let time =
            resolution.nanos(u64::from(high) << 32 | u64::from(low)) + i128::from(offset) * 1_000_000_000;
        Ok(Found { time: Some(time), interface: number, link_type, captured, length: length.max(captured) })
    }

    /// Reads a packet without a time, of the section's first interface: its length, then as many bytes as the
    /// block has room for.
    fn simple_packet<R: Read>(
        &self,
        source: &mut Source<R>,
        kept: &mut [u8],
        body: u32,
    ) -> Result<Found, Problem> {
        let Some(room) = body.checked_sub(4) else {
            return damaged(format!("the block of the next packet has {body} bytes instead of 4 or more"));
        };
        let [length] = self.order.words(&source.array::<4>()?);
        let Some(&Interface { link_type, .. }) = self.interfaces.first() else {
            return damaged("the next packet is of the first interface, and the section describes none");
        };
        let captured = length.min(room);
        keep(source, kept, captured)?;
        source.skip(u64::from(room - captured))?;
        Ok(Found { time: None, interface: 0, link_type, captured, length })
    }
}

/// Reads the header of a section, behind its type and its length. Returns the byte order.
fn section<R: Read>(source: &mut Source<R>, length: [u8; 4]) -> Result<Order, Problem> {
    let said = source.array()?;
    let Some(order) = [Order::Big, Order::Little].into_iter().find(|order| order.u32(said) == BYTE_ORDER)
    else {
        return damaged("a section does not say its byte order");
    };
    let length = order.u32(length);
    let Some(left) = body_of(length)?.checked_sub(4) else {
        return damaged(format!("the header of a section has {length} bytes instead of 28 or more"));
    };
    source.skip(u64::from(left))?;
    close(source, order, length)?;
    Ok(order)
}

/// Returns the length of a block without its type and its lengths.
fn body_of(length: u32) -> Result<u32, Problem> {
    match length.checked_sub(12) {
        Some(body) if length.is_multiple_of(4) => Ok(body),
        _ => damaged(format!("a block would have {length} bytes; blocks have 12 or more, in steps of 4")),
    }
}

/// Reads the length behind a block.
fn close<R: Read>(source: &mut Source<R>, order: Order, length: u32) -> Result<(), Problem> {
    let behind = order.u32(source.array()?);
    if behind == length {
        return Ok(());
    }
    damaged(format!("the length of a block is {length} before it and {behind} behind it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_resolution_are_nanoseconds() {
        let nanos = |option, units| Resolution::read(option).map(|resolution| resolution.nanos(units));
        assert_eq!(nanos(6, 1_500_000), Some(1_500_000_000));
        assert_eq!(nanos(9, 7), Some(7));
        assert_eq!(nanos(0, 3), Some(3_000_000_000));
        // Picoseconds, and halves of a 1024th of a second.
        assert_eq!(nanos(12, 1_999), Some(1));
        assert_eq!(nanos(0x8b, 1), Some(488_281));
        assert_eq!(nanos(0, u64::MAX), Some(i128::from(u64::MAX) * 1_000_000_000));
        assert_eq!((nanos(20, 1), nanos(0xc0, 1)), (None, None));
    }
}
