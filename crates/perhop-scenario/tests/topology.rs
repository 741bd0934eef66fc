//! Topologies and traffic matrices: from a short table to a network, and each problem at its place.

use std::collections::BTreeMap;

use perhop_scenario::format::GraphLink;
use perhop_scenario::{Driver, Files, Scenario};
use perhop_sim::Network;

const REST: &str = r#"
[[flows]]
name = "tcp"
count = 1000
between = { weights = "degree" }
transport = { tcp = "newreno" }
"#;

fn text(topology: &str) -> String {
    format!("duration = \"1s\"\n[topology]\n{topology}\n{REST}")
}

const LINK: &str = "link = { rate = \"1Gbps\", delay = \"1ms\" }";

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::from_toml_for(text, "s.toml", Driver::Simulator, &Here).map_err(|error| error.to_string())
}

fn network(topology: &str) -> Network {
    read(&text(&format!("{topology}\n{LINK}"))).unwrap().network()
}

/// Files, made up.
struct Here;

impl Files for Here {
    fn read(&self, name: &str) -> Result<String, String> {
        match name {
            "triangle.graphml" => Ok("<graphml><key id=\"l\" for=\"node\" attr.name=\"label\"/><key id=\"r\" for=\"edge\" \
                attr.name=\"LinkSpeedRaw\"/><graph edgedefault=\"undirected\"><node id=\"0\"><data key=\"l\">A</data></node>\
                <node id=\"1\"><data key=\"l\">B</data></node><node id=\"2\"><data key=\"l\">C</data></node>\
                <edge source=\"0\" target=\"1\"><data key=\"r\">2500000</data></edge><edge source=\"1\" target=\"2\"/>\
                <edge source=\"2\" target=\"0\"/></graph></graphml>".into()),
            "demands.csv" => Ok("from,to,rate_Mbps\nA,B,7\nB,C,2\nC,A,1\n".into()),
            "unknown.csv" => Ok("# two\nfrom,to,rate_Mbps\nr1,r2,7\nr1,r9,2\n".into()),
            "idle.csv" => Ok("from,to,rate_Mbps\nr1,r2,7\nr9,r1,0\n".into()),
            "diagonal.csv" => Ok("from,to,rate_Mbps\nr1,r1,0\nr1,r2,7\n".into()),
            "itself.csv" => Ok("from,to,rate_Mbps\nr1,r1,1\n".into()),
            _ => Err(format!("{name}: no such file")),
        }
    }
}

#[test]
fn topologies_have_the_size_of_their_formula() {
    for (topology, nodes, links) in [
        ("chain = 5000", 5000, 4999),
        ("ring = 12", 12, 12),
        ("star = 9", 10, 9),
        ("fat-tree = { k = 8 }", 80 + 128, 3 * 128),
        ("fat-tree = { k = 8, hosts = false }", 80, 2 * 128),
        ("isp = { core = 50, aggregation = 9, edge = 10 }", 5000, 50 + 25 + 900 + 4500),
        ("graph.links = [[\"a\", \"b\"], [\"b\", \"c\"], [\"b\", \"a\"]]", 3, 3),
        ("graph.file = \"triangle.graphml\"", 3, 3),
    ] {
        let network = network(topology);
        assert_eq!((network.nodes, network.links.len()), (nodes, 2 * links), "{topology}");
        assert_eq!(network.flows.len(), 1000);
        assert!(network.flows.iter().all(|flow| flow.from != flow.to));
    }
}

#[test]
fn a_run_reports_the_links_of_the_tiers_in_results_and_those_that_are_written() {
    let topology = format!(
        "isp = {{ core = 3, aggregation = 1, edge = 1 }}\nresults = [\"core\"]\n{}\n\
         [links.shortcut]\nfrom = \"core1-agg1-edge1\"\nto = \"core3\"\nrate = \"1Mbps\"\ndelay = \"0s\"\n",
        LINK.replace(" }", ", queue = { aqm = \"drop-tail\", limit = \"9p\" } }")
    );
    let scenario = read(&text(&topology)).unwrap();
    assert!(scenario.network().unreported.is_empty());
    let network = scenario.network_of_results();
    let reported = (0..network.links.len()).filter(|&link| network.reports(link));
    let mut reported: Vec<&str> = reported.map(|link| &*network.links[link].name).collect();
    reported.sort_unstable();
    let ring = ["core1--core2", "core2--core3", "core3--core1"];
    let both = ring.map(|name| [name.to_owned(), format!("{name} (reverse)")]).concat();
    assert_eq!(reported, [&both[..], &["shortcut".to_owned()]].concat());
}

#[test]
fn the_canonical_form_is_short_and_reads_the_same() {
    for topology in
        ["isp = { core = 50, aggregation = 9, edge = 10 }", "graph = { file = \"triangle.graphml\" }"]
    {
        let scenario = read(&text(&format!("{topology}\n{LINK}"))).unwrap();
        let json = serde_json::to_string(&scenario).unwrap();
        assert!(json.len() < 2000, "{json}");
        // Without the file.
        assert_eq!(Scenario::from_json(&json, "s.json").unwrap(), scenario);
        assert_eq!(Scenario::from_toml(&scenario.to_toml(), "s.toml").unwrap(), scenario);
    }
}

#[test]
fn tiers_and_tables_of_links_replace_what_all_have() {
    let queue = |limit: u32| format!("queue = {{ aqm = \"drop-tail\", limit = \"{limit}p\" }}");
    let topology = format!(
        "isp = {{ core = 3, aggregation = 1, edge = 1 }}\nlink = {{ rate = \"1Mbps\", delay = \"1ms\", {} }}\n\
         tiers.core = {{ rate = \"9Mbps\" }}\ntiers.edge = {{ delay = \"7ms\", {} }}\n\
         [links.core1--core2]\nfrom = \"core1\"\nto = \"core2\"\nrate = \"5Mbps\"\ndelay = \"2ms\"\n\
         [links.shortcut]\nfrom = \"core1-agg1-edge1\"\nto = \"core3\"\nrate = \"1Mbps\"\ndelay = \"0s\"\n",
        queue(10),
        queue(20)
    );
    let scenario = read(&text(&topology)).unwrap();
    let network = scenario.network();
    let links: BTreeMap<&str, _> = network.links.iter().map(|link| (link.name.as_str(), link)).collect();
    let is = |name: &str, rate: &str, delay: &str, limit: Option<u32>| {
        for name in [name.to_owned(), format!("{name} (reverse)")] {
            let link = links[&*name];
            assert_eq!((link.rate, link.delay), (rate.parse().unwrap(), delay.parse().unwrap()), "{name}");
            let queue =
                link.limited().map(|queue| serde_json::to_value(queue).unwrap()["rule"]["limit"].clone());
            assert_eq!(queue, limit.map(|limit| format!("{limit}p").into()), "{name}");
        }
    };
    is("core2--core3", "9Mbps", "1ms", Some(10));
    is("core1--core2", "5Mbps", "2ms", None);
    is("core1-agg1--core1", "1Mbps", "1ms", Some(10));
    is("core1-agg1-edge1--core1-agg1", "1Mbps", "7ms", Some(20));
    is("shortcut", "1Mbps", "0s", None);
    assert_eq!(scenario.links.len(), 3 + 6 + 3 + 1);
}

#[test]
fn gravity_draws_in_proportion_to_the_product_of_weights() {
    let flows = "count = 1000\nbetween = { weights = \"degree\" }";
    let drawn = |between: &str| {
        let text =
            text(&format!("star = 3\n{LINK}")).replace(flows, &format!("count = 90000\nbetween = {between}"));
        let network = read(&text).unwrap().network();
        let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        network.flows.iter().for_each(|flow| *counts.entry((flow.from.0, flow.to.0)).or_default() += 1);
        counts
    };
    // Routers in the order of their names: hub, leaf1, leaf2, leaf3. Of leaves, 6 pairs of 15000 flows; sd
    // 112.
    let equal = drawn("{}");
    assert_eq!(equal.len(), 6);
    assert!(
        equal.iter().all(|(pair, count)| pair.0 > 0 && pair.1 > 0 && count.abs_diff(15000) < 500),
        "{equal:?}"
    );
    // Degrees 3, 1, 1, 1: 6 pairs with the hub of weight 3, and 6 of weight 1, 24 in all.
    let by_degree = drawn("{ weights = \"degree\", among = [\"hub\", \"leaf\"] }");
    for (pair, count) in &by_degree {
        let weight = if pair.0 == 0 || pair.1 == 0 { 3 } else { 1 };
        assert!(count.abs_diff(90000 * weight / 24) < 500, "{by_degree:?}");
    }
    let given = drawn("{ weight = { leaf1 = 2.0, leaf3 = 0.0 } }");
    assert_eq!(given.keys().copied().collect::<Vec<_>>(), [(1, 2), (2, 1)]);
    assert_eq!(drawn("{ seed = 3 }"), drawn("{ seed = 3 }"));
    assert_ne!(drawn("{ seed = 3 }"), equal);
}

#[test]
fn measured_flows_are_divided_by_largest_remainders() {
    for (count, wanted) in [(10, [7, 2, 1]), (11, [8, 2, 1]), (4, [3, 1, 0])] {
        let flows = "count = 1000\nbetween = { weights = \"degree\" }";
        let text = text(&format!("graph = {{ file = \"triangle.graphml\" }}\n{LINK}"));
        let scenario =
            read(&text.replace(flows, &format!("count = {count}\nbetween.file = \"demands.csv\""))).unwrap();
        let network = scenario.network();
        let pairs = [(0, 1), (1, 2), (2, 0)];
        let found =
            pairs.map(|pair| network.flows.iter().filter(|flow| (flow.from.0, flow.to.0) == pair).count());
        assert_eq!(found, wanted);
        assert_eq!(network.links[0].rate, "2500kbps".parse().unwrap(), "LinkSpeedRaw of A--B");
        let graph = scenario.topology.unwrap().graph.unwrap();
        assert_eq!((graph.name.as_deref(), graph.file), (Some("triangle.graphml"), None));
        let [GraphLink { from, to, .. }, ..] = &graph.links[..] else { panic!("three links") };
        assert_eq!((from.as_str(), to.as_str()), ("A", "B"));
    }
}

#[test]
fn notices_of_a_queue_of_the_topology_come_once() {
    let queue = "queue = { scheduler = \"priority\", queues = [{ name = \"ef\", match = { dscp = 46 }, rule = { aqm = \
                 \"drop-tail\", limit = \"9p\" } }, { name = \"rest\", rule = { aqm = \"drop-tail\", limit = \"9p\" } }] }";
    let topology = format!("ring = 9\nlink = {{ rate = \"1Mbps\", delay = \"1ms\", {queue} }}");
    let scenario = read(&text(&topology)).unwrap();
    let notices: Vec<_> =
        scenario.notices().into_iter().map(|notice| (notice.path.len(), notice.text)).collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].1.contains("the queue `ef` stays empty"), "{notices:?}");
}

#[test]
fn what_has_no_effect_is_noticed() {
    let notices = |topology: &str, flows: &str| {
        let text = text(&format!("ring = 4\n{LINK}\n{topology}"))
            .replace("count = 1000\nbetween = { weights = \"degree\" }", flows);
        let notices = read(&text).unwrap().notices();
        notices.into_iter().map(|notice| (notice.path.len(), notice.text)).collect::<Vec<_>>()
    };
    let link = |name: &str, from: &str, to: &str| {
        format!("[links.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Mbps\"\ndelay = \"1ms\"\n")
    };
    let between = "count = 9\nbetween = {}";
    for backwards in [link("r2--r1", "r2", "r1"), link("r2--r1", "r1", "r2")] {
        let found = notices(&backwards, between);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1.starts_with("adds a link beside `r1--r2` of the topology"), "{found:?}");
    }
    for meant in [link("r1--r2", "r1", "r2"), link("second", "r2", "r1"), link("r3--r1", "r3", "r1")] {
        assert_eq!(notices(&meant, between), []);
    }
    let demands = |count: u32| {
        let pairs = "[[\"r1\", \"r2\", \"3Mbps\"], [\"r2\", \"r3\", \"1Mbps\"]]";
        notices("", &format!("count = {count}\nbetween = {{ demands = {pairs} }}"))
    };
    let found = demands(1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.starts_with("1 of 2 pairs get no flow, such as `r2` to `r3`: the group has 1 flow"));
    assert_eq!(demands(2).len(), 1, "3 : 1 of 2 flows is 1.5 : 0.5; the first of equal remainders wins");
    assert_eq!(demands(3), []);
    assert_eq!(notices("", "count = 1\nbetween = { file = \"diagonal.csv\" }"), []);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_problem_is_named_where_it_stands() {
    let with = |topology: &str| text(&format!("{topology}\n{LINK}"));
    for (topology, message) in [
        ("", "s.toml:2: topology: say which topology: one of `chain`, `ring`"),
        ("chain = 3\nring = 3", "s.toml:4: topology.ring: there is `chain` already"),
        ("chain = 1", "s.toml:3: topology.chain: at least 2 routers, not 1"),
        (
            "chain = 100001",
            "s.toml:3: topology.chain: 100001 routers and 100000 links; a topology has at most 100000 routers",
        ),
        ("star = 1", "s.toml:3: topology.star: at least 2 leaves, not 1"),
        ("chain = -1", "s.toml:3: topology.chain: expected a whole number from 2 to 100000, not -1"),
        ("ring = 2.5", "s.toml:3: topology.ring: expected a whole number from 3 to 100000, not 2.5"),
        ("star = 5000000000", "topology.star: expected a whole number from 2 to 99999, not 5000000000"),
        ("star = \"5\"", "topology.star: expected a whole number from 2 to 99999, not the text \"5\""),
        (
            "fat-tree = { k = 5 }",
            "topology.fat-tree.k: a switch has an even number of ports, at least 2, not 5",
        ),
        ("fat-tree = { k = 4294967294 }", "routers and"),
        (
            "isp = { core = 2, aggregation = 1, edge = 1 }",
            "topology.isp.core: a ring has at least 3 routers, not 2",
        ),
        ("isp = { core = 5, aggregation = 0, edge = 1 }", "topology.isp.edge: without aggregation routers"),
        (
            "isp = { core = 5, aggregation = 1, edge = 1, chords = 6 }",
            "topology.isp.chords: a ring of 5 routers has at most 5 chords",
        ),
        (
            "isp = { core = 4294967295, aggregation = 4294967295, edge = 4294967295 }",
            "a topology has at most",
        ),
        ("graph = {}", "topology.graph: needs a `file` in GraphML, or `links`"),
        (
            "graph = { links = [[\"a\", \"b\"]], distances = true }",
            "topology.graph.distances: says what to take from a file",
        ),
        ("graph = { links = [[\"a\"]] }", "a link has two routers"),
        (
            "graph = { links = [[\"a\", \"b\", \"fast\"]] }",
            "`fast` is neither the rate nor the delay of the link",
        ),
        ("graph = { links = [[\"a\", \"b\", \"1ms\", \"2ms\"]] }", "`2ms` is neither"),
        ("graph = { links = [[\"a\", \"a\"]] }", "topology.graph.links[0]: the link connects `a` to itself"),
        ("graph = { file = \"x\" }", "topology.graph.file: x: no such file"),
        ("graph = { file = \"demands.csv\" }", "topology.graph.file: demands.csv:1: is no valid XML"),
        ("graph = { file = \"triangle.graphml\", distances = true }", "leave `distances` out"),
        (
            "graph = { file = \"triangle.graphml\", links = [[\"a\", \"b\"]] }",
            "topology.graph.links: the links are those of `file`",
        ),
        ("ring = 4\ntiers.edge = {}", "no links belong to a tier `edge` (tiers of links here: router)"),
        ("ring = 4\nlinks = 3", "unknown key `links`; did you mean `link`?"),
    ] {
        let error = read(&with(topology)).unwrap_err();
        assert!(error.contains(message) && !error.contains('\n'), "{topology}: {error}");
    }
    let ring = with("ring = 4");
    for (from, to, message) in [
        (
            "[[flows]]",
            "[links.r1--r2]\nfrom = \"r2\"\nto = \"r1\"\nrate = \"1Mbps\"\ndelay = \"1ms\"\n[[flows]]",
            "links.r1--r2.from: replaces the link of this name of the topology",
        ),
        (
            "between",
            "from = \"r1\"\nbetween",
            "flows[0].from: the matrix says where flows begin: leave out this key or `between`",
        ),
        (
            "between = { weights = \"degree\" }",
            "from = \"r1\"\nto = \"r9\"",
            "flows[0].to: unknown node `r9`; did you mean `r1`? (known nodes: r1, r2, r3, r4)",
        ),
        ("weights = \"degree\"", "among = [\"edge\"]", "flows[0].between.among[0]: no tier or router `edge`"),
        ("weights = \"degree\"", "among = [\"r1\"]", "flows[0].between.among: at least two routers"),
        ("weights = \"degree\"", "weight = { r9 = 1.0 }", "flows[0].between.weight: unknown router `r9`"),
        ("weights = \"degree\"", "weight = { r1 = -1.0 }", "is a number from 0 to 1e12, not -1"),
        (
            "weights = \"degree\"",
            "weight = { r1 = 0.0, r2 = 0.0, r3 = 0.0 }",
            "at least two routers need a weight above 0",
        ),
        (
            "weights = \"degree\"",
            "demands = [[\"r1\", \"r2\", \"1Mbps\"]], seed = 1",
            "flows[0].between.seed: is of gravity",
        ),
        (
            "weights = \"degree\"",
            "demands = [[\"r1\", \"r7\", \"1Mbps\"]]",
            "flows[0].between.demands[0]: unknown router `r7`",
        ),
        ("weights = \"degree\"", "demands = [[\"r1\", \"r1\", \"1Mbps\"]]", "goes from `r1` to itself"),
        ("weights = \"degree\"", "demands = [[\"r1\", \"r2\"]]", "a demand is two routers and a rate"),
        (
            "weights = \"degree\"",
            "file = \"unknown.csv\"",
            "flows[0].between.file: unknown.csv:4: unknown router `r9`; did you mean `r1`?",
        ),
        ("weights = \"degree\"", "file = \"idle.csv\"", "between.file: idle.csv:3: unknown router `r9`"),
        ("weights = \"degree\"", "file = \"itself.csv\"", "itself.csv:2: goes from `r1` to itself"),
        ("weights = \"degree\"", "demands = []", "flows[0].between.demands: the list is empty; fill it, or"),
        ("weights = \"degree\"", "among = []", "flows[0].between.among: the list is empty; fill it, or"),
        (
            "[[flows]]",
            "[links.r1--r2]\nrate = \"1Mbps\"\n[[flows]]",
            "s.toml:6: links.r1--r2: key `from` is missing: this table describes a whole link",
        ),
        ("weights = \"degree\"", "file = \"triangle.graphml\"", "triangle.graphml:1: `<graphml>"),
        ("count = 1000", "count = 4000000000", "a scenario has 1 to 1000000 flows"),
        (
            "transport",
            "arrivals = { rate = \"1/s\" }\ntransport",
            "flows[0].arrivals: a population is between two routers",
        ),
    ] {
        assert!(ring.contains(from), "{from}");
        let error = read(&ring.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(message) && !error.contains('\n'), "{to}: {error}");
    }
    let apart = with("graph.links = [[\"a\", \"b\"], [\"c\", \"d\"]]");
    assert!(read(&apart).unwrap_err().contains("flows[0].between: `c` cannot be reached from `a`"));
    Scenario::from_toml_for(&ring, "s.toml", Driver::RealPackets, &Here).unwrap();
}
