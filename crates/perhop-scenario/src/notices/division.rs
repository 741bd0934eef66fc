//! Streams whose packets a queue divides among several queues.

use perhop_core::scheduler::{AnyScheduler, Discipline, SchedulerParams};
use perhop_core::{Bitrate, Color, Dscp, Environment, Header, Streams};

/// Returns the scheduler of a queue on a link of this rate, to ask for packets' classes.
pub(super) fn classifier(queue: &SchedulerParams, rate: Bitrate) -> AnyScheduler<Header> {
    queue.clone().build(Environment { rate }, Streams { seed: 0, path: "" })
}

/// How a queue divides the packets of one stream: those of each color that its meter lets pass, and the class
/// that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    key: String,
    /// What each color's packets meet.
    meets: String,
    /// What would keep them together.
    remedy: String,
}

/// Returns how a queue on a link of this rate divides the packets of one stream, which come to it with these
/// headers, if it does.
pub fn division(queue: &SchedulerParams, rate: Bitrate, packets: Vec<Header>) -> Option<Division> {
    let discipline = classifier(queue, rate);
    let packets = packets.into_iter();
    let classes: Vec<(Color, Dscp, usize)> =
        packets.map(|packet| (packet.color, packet.dscp, discipline.class_of(&packet))).collect();
    let first = classes.iter().map(|&(_, _, class)| class).min()?;
    if classes.iter().all(|&(_, _, class)| class == first) {
        return None;
    }
    let keys = queue.class_keys();
    let key = keys[first..].iter().find_map(|class| class.key.clone())?;
    let meets = classes.iter().map(|&(color, dscp, class)| {
        format!("{} ones ({dscp}) `{}`", color.name(), discipline.class_name(class))
    });
    let mut codepoints: Vec<String> = classes.iter().map(|(_, dscp, _)| format!("\"{dscp}\"")).collect();
    codepoints.dedup();
    Some(Division {
        key,
        meets: meets.collect::<Vec<_>>().join(", "),
        remedy: format!("dscp = [{}]", codepoints.join(", ")),
    })
}

/// Notices of streams whose packets a queue divides: key and text.
pub fn divisions<'a>(
    streams: impl IntoIterator<Item = (&'a str, Option<Division>)>,
) -> Vec<(String, String)> {
    let mut alike: Vec<(Division, Vec<String>)> = Vec::new();
    for (name, division) in streams {
        let Some(division) = division else { continue };
        let name = format!("`{name}`");
        match alike.iter_mut().find(|(known, _)| *known == division) {
            Some((_, names)) => names.push(name),
            None => alike.push((division, vec![name])),
        }
    }
    let notices = alike.into_iter().map(|(Division { key, meets, remedy }, names)| {
        let text = format!(
            "packets of {} go to different queues: {meets}; they can overtake each other, which TCP takes for loss; to \
             keep them together, match all codepoints that the marker writes, {remedy}",
            names.join(", ")
        );
        (key, text)
    });
    notices.collect()
}
