"""A backup that yields, as a class of one's own: what users of the web notice of it.

python examples/my_application.py
"""

import perhop
from perhop import Action, Application, Bytes


class MyBackup(Application):
    """Fetches chunk after chunk, and pauses the longer the slower the last one came."""

    chunk: Bytes = Bytes("250kB")
    patience: float = 5.0
    began, fastest = 0, float("inf")

    def on_start(self, now, random):
        self.began = now
        return Action.request(self.request)

    def on_request(self, connection, now, random):
        return Action.respond(self.chunk)

    def on_response(self, connection, now, random):
        took = now - self.began
        self.fastest = min(self.fastest, took)
        return Action.wait(int(self.patience * (took - self.fastest)))

    def on_timer(self, now, random):
        return self.on_start(now, random)


def network(backup: MyBackup | None) -> perhop.Scenario:
    """Users of the web at 10 Mbit/s, and perhaps a backup."""
    queue = perhop.scenario.DropTail(limit="100p")
    link = perhop.scenario.Link(from_="server", to="home", rate="10Mbps", delay="20ms", queue=queue)
    tcp = perhop.scenario.Tcp(tcp="linux", packet="1500B", ack="52B")
    ends = {"from_": "server", "to": "home", "transport": tcp}
    flows = [perhop.scenario.Flow(name="web", count=10, application=perhop.scenario.Web(), **ends)]
    if backup is not None:
        flows.append(perhop.scenario.Flow(name="backup", application=backup, **ends))
    return perhop.Scenario(duration="300s", warmup="20s", links={"downlink": link}, flows=flows)


BACKUPS = {"none": None, "patient": MyBackup(), "greedy": MyBackup(patience=0)}

if __name__ == "__main__":
    print("backup   pages of the web, mean and 95th percentile   chunks of the backup")
    for name, backup in BACKUPS.items():
        tables = perhop.run(network(backup), runs=5).application_summary()
        mean, p95 = tables["web"].select("page_mean_s", "page_p95_s").row(0)
        chunks = tables["python"]["responses"][0] if backup else 0
        print(f"{name:8} {mean:28.2f} s and {p95:5.2f} s {chunks:22.0f}")
