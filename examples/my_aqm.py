"""BLUE (Feng, Shin, Kandlur & Saha 2002) as a class of one's own, beside four built-in rules.

python examples/my_aqm.py
"""

import perhop
from perhop import Aqm, Depth, Duration, Probability, Verdict


class MyBlue(Aqm):
    """Drops at random, with a probability that overflows raise and idle times lower."""

    limit: Depth
    increment: Probability = Probability(0.02)
    decrement: Probability = Probability(0.002)
    freeze: Duration = Duration("100ms")
    probability, moved, idle_since = 0.0, 0, None  # the state at the start of a run

    def on_arrival(self, packet, queue, now, random):
        if self.idle_since is not None and self.probability > 0:
            self.move(-self.decrement, self.idle_since)
        self.idle_since = None
        if queue.is_full(self.limit):
            self.move(self.increment, now)
            return Verdict.OVERFLOW
        return Verdict.DROP if random.chance(self.probability) else Verdict.PASS

    def on_idle(self, since):
        self.idle_since = since

    def move(self, step, now):
        if now - self.moved > self.freeze:
            self.probability, self.moved = min(1.0, max(0.0, self.probability + step)), now


def network(rule: perhop.scenario.Queue) -> perhop.Scenario:
    """Twenty TCP flows at 20 Mbit/s, with a round-trip time of 100 ms."""
    link = perhop.scenario.Link(from_="a", to="b", rate="20Mbps", delay="50ms", queue=rule)
    flows = [perhop.scenario.Flow(name="tcp", count=20, from_="a", to="b", transport=perhop.scenario.Tcp(tcp="newreno"))]
    return perhop.Scenario(duration="60s", warmup="20s", links={"link": link}, flows=flows)


RULES = {
    "my blue": MyBlue(limit="200p"),
    "drop-tail": perhop.scenario.DropTail(limit="200p"),
    "red": perhop.scenario.Red(thresholds="20/60/0.1", limit="200p"),
    "codel": perhop.scenario.Codel(limit="200p"),
    "pie": perhop.scenario.Pie(limit="200p"),
}

if __name__ == "__main__":
    print("rule       utilization  delay (95th percentile)   loss")
    for name, rule in RULES.items():
        link = perhop.run(network(rule), runs=5).link_summary().row(0, named=True)
        low, high = link["delay_p95_low_s"] * 1e3, link["delay_p95_high_s"] * 1e3
        print(f"{name:10} {link['utilization']:11.1%}  {low:7.1f} to {high:6.1f} ms  {link['loss']:9.2%}")
