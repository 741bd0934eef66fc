//! GraphML (Brandes et al., 2002), with the attributes of the Internet Topology Zoo (Knight et al., IEEE JSAC
//! 29(9), 2011).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use perhop_core::Bitrate;
use roxmltree::{Document, Node};

use super::super::MOST_LINKS;
use super::super::distance::Position;
use super::GraphLink;
use crate::bounds::Syntax;

/// The attributes that are taken from a file beside its nodes and edges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take {
    /// Delays, from the positions of nodes.
    pub(super) distances: bool,
    /// Rates, from `LinkSpeedRaw`.
    pub(super) rates: bool,
}

/// A problem: its line, if it has one, and what is wrong.
type Refusal = (Option<usize>, String);

/// Edges and nodes of a file that are no links and routers of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Merged {
    /// Directed edges that became the other direction of a link.
    pub(super) joined: usize,
    /// Joined edges whose own rate differs from that of the link.
    pub(super) differing: usize,
    /// Directed edges without one in the other direction, whose links have both nevertheless.
    pub(super) one_way: usize,
    /// Edges that join a node to itself.
    pub(super) loops: usize,
    /// Nodes without edges to others.
    pub(super) alone: usize,
}

impl Merged {
    /// Returns what became of them, in a sentence; `None` if there are none.
    pub(super) fn described(self) -> Option<String> {
        let Self { joined, differing, one_way, loops, alone } = self;
        let parts = [
            (joined, "directed edge", "made the other direction of a link between the same two nodes"),
            (differing, "edge", "of these with another rate than that link, whose rate counts"),
            (
                one_way,
                "directed edge",
                "without one in the other direction, whose link carries both directions",
            ),
            (loops, "edge", "from a node to itself, left out"),
            (alone, "node", "without an edge to another, left out"),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let described: Vec<String> = parts
            .map(|(count, one, what)| format!("{count} {one}{} {what}", if count == 1 { "" } else { "s" }))
            .collect();
        (!described.is_empty()).then(|| described.join("; "))
    }
}

/// Returns the links of a file, and what of it is none; or the first problem.
pub(super) fn read(text: &str, take: Take) -> Result<(Vec<GraphLink>, Merged), Refusal> {
    Syntax::Xml.check(text).map_err(|excess| (Some(excess.line), excess.text))?;
    let document = Document::parse(text).map_err(|error| (Some(error.pos().row as usize), plain(&error)))?;
    let graph = graph_of(&document)?;
    let line = |node| Some(line_of(&document, node));
    let keys = Keys::of(document.root_element());
    let nodes = nodes(graph, &keys, take).map_err(|(node, text)| (line(node), text))?;
    let default = graph.attribute("edgedefault") == Some("directed");
    let (mut links, mut merged, mut joined) = (Vec::new(), Merged::default(), BTreeSet::new());
    let mut one_way = OneWay::default();
    for edge in graph.children().filter(|node| node.has_tag_name("edge")) {
        let ends = ["source", "target"].map(|end| (end, edge.attribute(end)));
        let mut found = Vec::new();
        for (end, id) in ends {
            let id = id.ok_or_else(|| (line(edge), format!("an <edge> has no `{end}`")))?;
            found.push(nodes.get(id).ok_or_else(|| {
                (line(edge), format!("an edge joins the node `{id}`, which the file does not have"))
            })?);
        }
        let [from, to] = found[..] else { unreachable!("two ends") };
        if from.name == to.name {
            merged.loops += 1;
            continue;
        }
        let rate = take.rates.then(|| keys.value(edge, "LinkSpeedRaw")).flatten();
        let rate = rate.map(|text| rate_of(text).map_err(|text| (line(edge), text))).transpose()?;
        if edge.attribute("directed").map_or(default, |directed| directed == "true") {
            if let Some(link) = one_way.join(&from.name, &to.name) {
                let there: &GraphLink = &links[link];
                merged.joined += 1;
                merged.differing += usize::from(rate.is_some() && rate != there.rate);
                continue;
            }
            one_way.add(&from.name, &to.name, links.len());
        }
        joined.extend([&from.name, &to.name]);
        let delay = from.position.zip(to.position).map(|(from, to)| from.delay_to(to));
        links.push(GraphLink { from: from.name.clone(), to: to.name.clone(), rate, delay });
        if links.len() as u64 > MOST_LINKS {
            return Err((line(edge), format!("more than {MOST_LINKS} links")));
        }
    }
    if links.is_empty() {
        return Err((line(graph), "the graph has no <edge> between two nodes".into()));
    }
    if take.distances && links.iter().all(|link| link.delay.is_none()) {
        return Err((
            line(graph),
            "no edge joins nodes with a `Longitude` and a `Latitude`; leave `distances` out".into(),
        ));
    }
    (merged.one_way, merged.alone) = (one_way.count(), nodes.len() - joined.len());
    Ok((links, merged))
}

/// Returns the one graph of a file.
fn graph_of<'a, 'input>(document: &'a Document<'input>) -> Result<Node<'a, 'input>, Refusal> {
    let root = document.root_element();
    if !root.has_tag_name("graphml") {
        let found = root.tag_name().name();
        return Err((None, format!("is no GraphML: a <graphml> holds a <graph>, and here is <{found}>")));
    }
    let refused = |node, text: &str| Err((Some(line_of(document, node)), text.into()));
    let Some(graph) = root.children().find(|node| node.has_tag_name("graph")) else {
        return refused(root, "the <graphml> has no <graph>");
    };
    if let Some(second) = root.descendants().find(|other| other.has_tag_name("graph") && *other != graph) {
        return refused(second, "a second <graph>; a topology is one: take the other out");
    }
    if let Some(edge) = graph.descendants().find(|node| node.has_tag_name("hyperedge")) {
        return refused(edge, "a <hyperedge> is no link; write an <edge> for each pair of nodes");
    }
    Ok(graph)
}

fn line_of(document: &Document<'_>, node: Node<'_, '_>) -> usize {
    document.text_pos_at(node.range().start).row as usize
}

/// Links of directed edges, by their ends, that no edge in the other direction has joined yet.
#[derive(Default)]
struct OneWay<'a>(BTreeMap<(&'a str, &'a str), VecDeque<usize>>);

impl<'a> OneWay<'a> {
    fn add(&mut self, from: &'a str, to: &'a str, link: usize) {
        self.0.entry((from, to)).or_default().push_back(link);
    }

    /// Returns the first link in the other direction, which this edge completes: each edge completes one.
    fn join(&mut self, from: &'a str, to: &'a str) -> Option<usize> {
        self.0.get_mut(&(to, from))?.pop_front()
    }

    fn count(&self) -> usize {
        self.0.values().map(VecDeque::len).sum()
    }
}

/// Returns the parser's message in our words, where it has none of its own that a reader understands.
fn plain(error: &roxmltree::Error) -> String {
    match error {
        roxmltree::Error::DtdDetected => {
            "has a document type declaration (DTD); remove it, GraphML needs none".into()
        }
        _ => format!("is no valid XML: {error}"),
    }
}

/// A node of a file.
struct Router {
    name: String,
    position: Option<Position>,
}

/// Returns the nodes by id, each with a name of its own.
fn nodes<'a, 'input>(
    graph: Node<'a, 'input>,
    keys: &Keys<'a>,
    take: Take,
) -> Result<BTreeMap<&'a str, Router>, (Node<'a, 'input>, String)> {
    let mut found: BTreeMap<&str, (String, Option<Position>)> = BTreeMap::new();
    for node in graph.children().filter(|node| node.has_tag_name("node")) {
        let Some(id) = node.attribute("id") else { return Err((node, "a <node> has no `id`".into())) };
        let label = keys.value(node, "label").unwrap_or_default();
        let words: Vec<&str> =
            label.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let label = if words.is_empty() { id.to_owned() } else { words.join(" ") };
        let number = |key: &str, most: f64| {
            let Some(text) = keys.value(node, key).filter(|_| take.distances) else { return Ok(None) };
            let value = text.trim().parse::<f64>().ok().filter(|value| (-most..=most).contains(value));
            value
                .map(Some)
                .ok_or_else(|| (node, format!("the {key} `{text}` is no number from -{most} to {most}")))
        };
        let position = number("Latitude", 90.0)?.zip(number("Longitude", 180.0)?);
        let position = position.map(|(latitude, longitude)| Position { latitude, longitude });
        if found.insert(id, (label, position)).is_some() {
            return Err((node, format!("a second <node> has the id `{id}`")));
        }
    }
    let names = names(&found).map_err(|name| {
        let text = format!("two nodes would have the name `{name}`; give one of them another label");
        (graph, text)
    })?;
    let routers = found.into_iter().zip(names);
    Ok(routers.map(|((id, (_, position)), name)| (id, Router { name, position })).collect())
}

/// Returns the names of nodes, in the order of their ids: the label, and the id if the label alone is, or
/// becomes, that of another, too. An error is a name that two nodes have nevertheless.
fn names(nodes: &BTreeMap<&str, (String, Option<Position>)>) -> Result<Vec<String>, String> {
    let mut with_id = vec![false; nodes.len()];
    loop {
        let names =
            nodes.iter().zip(&with_id).map(
                |((id, (label, _)), with_id)| {
                    if *with_id { format!("{label} ({id})") } else { label.clone() }
                },
            );
        let names: Vec<String> = names.collect();
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for name in &names {
            *counts.entry(name).or_default() += 1;
        }
        let shared: Vec<usize> = (0..names.len()).filter(|&node| counts[names[node].as_str()] > 1).collect();
        let Some(&first) = shared.first() else { return Ok(names) };
        if shared.iter().all(|&node| with_id[node]) {
            return Err(names[first].clone());
        }
        for node in shared {
            with_id[node] = true;
        }
    }
}

/// The ids of attributes, by name.
struct Keys<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Keys<'a> {
    fn of(root: Node<'a, '_>) -> Self {
        let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for key in root.children().filter(|node| node.has_tag_name("key")) {
            if let (Some(name), Some(id)) = (key.attribute("attr.name"), key.attribute("id")) {
                keys.entry(name).or_default().insert(id);
            }
        }
        Self(keys)
    }

    /// Returns the text of an attribute of a node or edge.
    fn value(&self, of: Node<'a, '_>, name: &str) -> Option<&'a str> {
        let ids = self.0.get(name)?;
        let mut data = of.children().filter(|node| node.has_tag_name("data"));
        data.find(|node| node.attribute("key").is_some_and(|key| ids.contains(key)))?.text()
    }
}

/// Returns a rate from a number of bit/s, such as `1.0E10`.
fn rate_of(text: &str) -> Result<Bitrate, String> {
    let bps = text.trim().parse::<f64>().ok().filter(|bps| (1.0..1e18).contains(bps));
    let rate = bps.and_then(|bps| Bitrate::from_bps((bps + 0.5) as u64).ok());
    rate.ok_or_else(|| format!("the LinkSpeedRaw `{text}` is no rate in bit/s; or write `same-rates = true`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Take = Take { distances: true, rates: true };
    const ALL_BUT_DISTANCES: Take = Take { distances: false, rates: true };

    /// A graph as the Zoo writes them: made up.
    const GRAPH: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d32" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <graph edgedefault="undirected">
    <data key="d0">made up</data>
    <node id="0"><data key="d29">0.0</data><data key="d32">0.0</data><data key="d33"> North
      Town</data></node>
    <node id="1"><data key="d29">1.0</data><data key="d32">0.0</data><data key="d33">South &amp; East</data></node>
    <node id="2"><data key="d33">None</data></node>
    <node id="3"><data key="d33">None</data></node>
    <node id="4" />
    <node id="5"><data key="d33">alone</data></node>
    <edge source="0" target="1"><data key="d35">1.0E10</data></edge>
    <edge source="1" target="0" />
    <edge source="1" target="2" />
    <edge source="2" target="2" />
    <edge source="3" target="2" />
    <edge source="3" target="4" />
  </graph>
</graphml>
"#;

    fn link(from: &str, to: &str, rate: Option<&str>, delay: Option<&str>) -> GraphLink {
        let (rate, delay) = (rate.map(|text| text.parse().unwrap()), delay.map(|text| text.parse().unwrap()));
        GraphLink { from: from.into(), to: to.into(), rate, delay }
    }

    #[test]
    fn a_file_of_the_zoo() {
        let rest = [
            link("South & East", "None (2)", None, None),
            link("None (3)", "None (2)", None, None),
            link("None (3)", "4", None, None),
        ];
        let [there, back] = [Some("10Gbps"), None].map(|rate| (rate, Some("556us")));
        let there = link("North Town", "South & East", there.0, there.1);
        let back = link("South & East", "North Town", back.0, back.1);
        let both = [&[there.clone(), back][..], &rest].concat();
        let merged = Merged { loops: 1, alone: 1, ..Merged::default() };
        assert_eq!(read(GRAPH, ALL), Ok((both, merged)));
        // Of directed edges, two make a link.
        let directed = GRAPH.replace("undirected", "directed");
        let merged = Merged { joined: 1, one_way: 3, ..merged };
        assert_eq!(read(&directed, ALL), Ok(([&[there][..], &rest].concat(), merged)));
        let (plain, _) = read(GRAPH, Take { distances: false, rates: false }).unwrap();
        assert_eq!(plain[0], link("North Town", "South & East", None, None));
    }

    #[test]
    fn each_directed_edge_joins_one_in_the_other_direction() {
        // The edges between two nodes, as `>` and `<` with a rate or `-` without a direction, the links, and
        // what is said of the others.
        type Edges = &'static [(char, u32)];
        let cases: [(Edges, usize, &str); 6] = [
            (&[('>', 0), ('<', 0)], 1, "1 directed edge made the other direction"),
            (&[('>', 0), ('<', 0), ('>', 0)], 2, "1 directed edge without one in the other direction"),
            (&[('>', 0), ('<', 0), ('<', 0)], 2, "1 directed edge without one in the other direction"),
            (
                &[('>', 0), ('>', 0), ('>', 0), ('<', 0), ('<', 0), ('<', 0)],
                3,
                "3 directed edges made the other",
            ),
            (&[('>', 5), ('<', 7)], 1, "1 edge of these with another rate than that link"),
            (&[('-', 0), ('-', 0), ('-', 0)], 3, ""),
        ];
        for (edges, expected, part) in cases {
            let edge = |&(kind, rate): &(char, u32)| {
                let (from, to) = if kind == '<' { ("b", "a") } else { ("a", "b") };
                let data = if rate > 0 { format!("<data key=\"r\">{rate}</data>") } else { String::new() };
                let directed = kind != '-';
                format!("<edge source=\"{from}\" target=\"{to}\" directed=\"{directed}\">{data}</edge>")
            };
            let edges: String = edges.iter().map(edge).collect();
            let text = format!(
                "<graphml><key id=\"r\" attr.name=\"LinkSpeedRaw\"/><graph edgedefault=\"undirected\"><node id=\"a\"/><node \
                 id=\"b\"/>{edges}</graph></graphml>"
            );
            let (links, merged) = read(&text, ALL_BUT_DISTANCES).unwrap();
            let text = merged.described().unwrap_or_default();
            assert_eq!(links.len(), expected, "{edges}");
            assert!(text.contains(part) && text.is_empty() == part.is_empty(), "{edges}: {text}");
        }
    }

    #[test]
    fn nodes_stay_apart_whatever_their_labels() {
        let linked = |labels: [(&str, &str); 3]| {
            let node = |(id, label)| format!("<node id=\"{id}\"><data key=\"l\">{label}</data></node>");
            let [(a, _), (b, _), (c, _)] = labels;
            let text = format!(
                "<graphml><key id=\"l\" attr.name=\"label\"/><graph>{}<edge source=\"{a}\" target=\"{b}\"/><edge \
                 source=\"{b}\" target=\"{c}\"/></graph></graphml>",
                labels.map(node).concat()
            );
            read(&text, ALL_BUT_DISTANCES)
        };
        let links = linked([("0", "Wien"), ("1", "Wien"), ("2", "Wien (0)")]);
        let [first, second, third] = ["Wien (0)", "Wien (1)", "Wien (0) (2)"];
        assert_eq!(links.unwrap().0, [link(first, second, None, None), link(second, third, None, None)]);
        // Ids can be such that even with them two names are one.
        let (_, text) = linked([("x) (y", "A"), ("y", "A (x)"), ("x", "A")]).unwrap_err();
        assert!(text.contains("two nodes would have the name `A (x) (y)`"), "{text}");
    }

    #[test]
    fn each_problem_is_one_line() {
        for (from, to, line, part) in [
            ("</graphml>", "", None, "is no valid XML: "),
            (
                "<graphml xml",
                "<!DOCTYPE x [<!ENTITY a \"b\">]><graphml xml",
                None,
                "document type declaration",
            ),
            ("<graph ", "<grape ", None, "is no valid XML"),
            ("target=\"4\"", "target=\"9\"", Some(21), "joins the node `9`, which the file does not have"),
            ("target=\"4\"", "", Some(21), "an <edge> has no `target`"),
            ("id=\"4\"", "id=\"3\"", Some(14), "a second <node> has the id `3`"),
            ("id=\"4\"", "", Some(14), "a <node> has no `id`"),
            ("1.0E10", "fast", Some(16), "the LinkSpeedRaw `fast` is no rate in bit/s"),
            (">1.0<", ">181<", Some(11), "the Longitude `181` is no number from -180 to 180"),
            ("\"Latitude\"", "\"latitude\"", Some(7), "leave `distances` out"),
        ] {
            let (at, text) = read(&GRAPH.replacen(from, to, 1), ALL).unwrap_err();
            assert!(text.contains(part) && !text.contains('\n'), "{text}");
            assert!(line.is_none_or(|line| at == Some(line)), "{at:?}: {text}");
        }
        for (extra, part) in [
            ("<graph/>", "a second <graph>"),
            ("<hyperedge><endpoint node=\"0\"/></hyperedge>", "a <hyperedge> is no link"),
        ] {
            let text = GRAPH.replace("  </graph>", &format!("    {extra}\n  </graph>"));
            let (at, text) = read(&text, ALL).unwrap_err();
            assert!(at == Some(22) && text.starts_with(part), "{at:?}: {text}");
        }
        let twice = GRAPH.replace("</graph>", "</graph><graph/>");
        assert!(read(&twice, ALL).unwrap_err().1.starts_with("a second <graph>"));
        assert_eq!(read("<graphml/>", ALL), Err((Some(1), "the <graphml> has no <graph>".into())));
        assert!(read("<svg/>", ALL).unwrap_err().1.contains("and here is <svg>"));
        let none = "<graphml><graph edgedefault=\"undirected\"><node id=\"1\"/></graph></graphml>";
        assert!(read(none, ALL).unwrap_err().1.contains("no <edge> between two nodes"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_graph_or_has_a_problem(cut in 0..GRAPH.len(), insert in "[<>/&\"a-z=0-9 ]{0,6}") {
            let text = [&GRAPH[..cut], &insert, &GRAPH[cut..]].concat();
            if let Err((_, problem)) = read(&text, ALL) {
                prop_assert!(!problem.contains('\n'), "{}", problem);
            }
        }
    }
}
