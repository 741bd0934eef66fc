//! Several servers in a row, with other arrivals beside the flow of interest.

use super::{Convex, Line, Nanobits, divided_up, scaled_up};

/// Returns what a server in order of arrival, with this rate and cost, leaves to a flow beside a token bucket
/// of others: of the family of curves (Le Boudec & Thiran, proposition 6.2.1) the one for θ = T + b / R, with
/// rate R − r and latency T + b / R. `None` if the others take all of it.
pub fn left_in_order(server: Line, others: Line) -> Option<Convex> {
    let rate = server.rate - others.rate;
    let cost = server.amount.saturating_add(others.amount);
    (rate > 0).then(|| Convex::of([Line { rate, amount: scaled_up(cost, rate, server.rate) }]))
}

/// Returns the service of a row of strict servers as one, whatever the order of service: each burst of others
/// is paid once (pay multiplexing only once; Schmitt, Zdarsky & Fidler, INFOCOM 2008, theorem 3). `servers`
/// have each a rate and cost, and the rate of the others there; `bursts` are those of the others, each where
/// it joins the row. `None` if the others take all of a server.
pub fn paying_once(servers: &[(Line, i128)], bursts: Nanobits) -> Option<Convex> {
    let rate = servers.iter().map(|(server, others)| server.rate - others).min().filter(|rate| *rate > 0)?;
    let cost = servers.iter().try_fold(bursts, |sum, (server, others)| {
        let latency = divided_up(server.amount, server.rate);
        sum.checked_add(latency.checked_mul(others.checked_add(rate)?)?)
    })?;
    Some(Convex::of([Line { rate, amount: cost }]))
}
