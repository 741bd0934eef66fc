"""TCP Vegas (Brakmo & Peterson 1995) as a class of one's own, beside four built-in congestion controls.

python examples/my_congestion.py
"""

import perhop
from perhop import CongestionControl


class MyVegas(CongestionControl):
    """Keeps a few segments in the queue, by the round trip beyond the shortest one."""

    NEEDS = ("delivery",)  # the round trip of each segment
    least: float = 2.0
    most_queued: float = 4.0
    shortest = float("inf")

    def on_ack(self, ack, now, random):
        if ack.rtt is None:
            return
        self.shortest = min(self.shortest, ack.rtt)
        queued = self.window * (1 - self.shortest / ack.rtt)
        if queued > self.most_queued:
            self.threshold = 0  # slow start is over
            self.window = max(2.0, self.window - ack.delivered / self.window)
        elif self.window < self.threshold:
            self.window += ack.delivered / 2
        elif queued < self.least:
            self.window += ack.delivered / self.window


def network(congestion: str | MyVegas) -> perhop.Scenario:
    """Four TCP flows at 20 Mbit/s, with a round-trip time of 100 ms and a deep queue without an AQM."""
    tail = perhop.scenario.DropTail(limit="500p")
    link = perhop.scenario.Link(from_="a", to="b", rate="20Mbps", delay="50ms", queue=tail)
    tcp = perhop.scenario.Tcp(tcp="newreno", sack=True, congestion=congestion, initial_window="10p")
    flows = [perhop.scenario.Flow(name="tcp", count=4, from_="a", to="b", start="0s..1s", transport=tcp)]
    return perhop.Scenario(duration="60s", warmup="20s", links={"link": link}, flows=flows)


CONTROLS = {"my vegas": MyVegas(), "reno": "reno", "cubic": "cubic", "bbr3": "bbr3", "ledbat": "ledbat"}

if __name__ == "__main__":
    print("control    utilization  delay (95th percentile)   loss")
    for name, control in CONTROLS.items():
        link = perhop.run(network(control), runs=10).link_summary().row(0, named=True)
        low, high = link["delay_p95_low_s"] * 1e3, link["delay_p95_high_s"] * 1e3
        print(f"{name:10} {link['utilization']:11.1%}  {low:7.1f} to {high:6.1f} ms  {link['loss']:9.3%}")
