// Bulk TCP over one bottleneck in ns-3: the congestion controls and queue disciplines that ns-3 has.
//
//   host i --access-- edge ====bottleneck==== core --access-- peer i        (one pair of hosts for each flow)
//
// What could make ns-3's network another one than perhop's is taken out:
//
// - A packet of ns-3's point-to-point links carries 2 bytes of PPP. All rates are raised by 1502/1500, so that a full
//   segment of 1500 bytes takes as long as in perhop.
// - A device has a queue of its own below the queue discipline, in which one packet waits out of the discipline's
//   sight. Here the discipline hands down a packet only when the device is idle (`HandOverWhenIdle`).
// - The other devices have unlimited queues and no queue discipline.
//
// Usage: dumbbell --rate=10e6 --delay=0.02 --starts=0.1,0.5 --disc='ns3::CoDelQueueDisc[UseEcn=true]' …
// Seconds, bit/s. ns-3's own options set the defaults of attributes: --ns3::TcpL4Protocol::SocketType=ns3::TcpCubic.
// Prints one line of JSON, counted after the warm-up: bytes that each receiver got in order, packets that came to
// the bottleneck's discipline, drops and marks by reason, mean and 99th percentile of the waiting time in seconds.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 5000;
constexpr double WITH_PPP = 1502.0 / 1500.0;

struct Setting
{
    double rate = 10e6;
    double delay = 0.02;
    double accessRate = 100e6;
    double accessDelay = 0.001;
    std::string starts = "0";
    std::string disc = "ns3::FifoQueueDisc[MaxSize=100p]";
    double warmup = 10;
    double duration = 60;
    uint32_t seed = 1;
};

// NewReno that halves its window, as perhop's does. ns-3's own halves what is in flight at the third duplicate
// acknowledgement, without what was selectively acknowledged and what is lost: some two segments less.
class TcpNewRenoOfWindow : public TcpNewReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id =
            TypeId("TcpNewRenoOfWindow").SetParent<TcpNewReno>().AddConstructor<TcpNewRenoOfWindow>();
        return id;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        return std::max(2 * state->m_segmentSize, state->m_cWnd.Get() / 2);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpNewRenoOfWindow>(this);
    }
};

NS_OBJECT_ENSURE_REGISTERED(TcpNewRenoOfWindow);

// CUBIC that grows at least as Reno would (RFC 9438, section 4.3), as perhop's does. ns-3.37's has no such rule. What
// else is ns-3's own is left out, too: after a timeout it forgets the least round trip and computes with the least of
// all times; it rounds 70 % of the window down to whole segments; and the acknowledgement that ends a recovery lets
// the window grow for all segments that had been selectively acknowledged before.
class TcpCubicFriendly : public TcpCubic
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("TcpCubicFriendly").SetParent<TcpCubic>().AddConstructor<TcpCubicFriendly>();
        return id;
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t segments) override
    {
        segments = std::min(segments, 1U);
        const bool avoids = state->m_cWnd >= state->m_ssThresh;
        TcpCubic::IncreaseWindow(state, segments);
        if (avoids && m_estimate > 0)
        {
            const double segment = state->m_segmentSize;
            m_estimate += (m_estimate < m_before ? SLOPE : 1) * segments * segment * segment / state->m_cWnd.Get();
            state->m_cWnd = std::max(state->m_cWnd.Get(), static_cast<uint32_t>(m_estimate));
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t inFlight) override
    {
        TcpCubic::GetSsThresh(state, inFlight);
        m_before = state->m_cWnd.Get();
        m_estimate = std::max(BETA * m_before, 2.0 * state->m_segmentSize);
        return static_cast<uint32_t>(m_estimate);
    }

    void CongestionStateSet(Ptr<TcpSocketState>, const TcpSocketState::TcpCongState_t) override {}

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpCubicFriendly>(this);
    }

  private:
    static constexpr double BETA = 0.7;
    static constexpr double SLOPE = 3 * (1 - BETA) / (1 + BETA);
    double m_estimate = 0;
    double m_before = 0;
};

NS_OBJECT_ENSURE_REGISTERED(TcpCubicFriendly);

// DCTCP that grows as perhop's: by fractions of a segment, and also in the round trip after a reduction, for what is
// not marked (RFC 8257, section 3.4). ns-3's, as Linux's, grows by whole segments only, and not until all that was
// sent before the reduction is acknowledged.
class TcpDctcpGrowing : public TcpDctcp
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("TcpDctcpGrowing").SetParent<TcpDctcp>().AddConstructor<TcpDctcpGrowing>();
        return id;
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t segments, const Time& rtt) override
    {
        TcpDctcp::PktsAcked(state, segments, rtt);
        if (state->m_congState == TcpSocketState::CA_CWR && state->m_ecnState != TcpSocketState::ECN_ECE_RCVD)
        {
            const uint64_t segment = state->m_segmentSize;
            state->m_ssThresh += static_cast<uint32_t>(segments * segment * segment / state->m_ssThresh.Get());
        }
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpDctcpGrowing>(this);
    }

  protected:
    void CongestionAvoidance(Ptr<TcpSocketState> state, uint32_t segments) override
    {
        const uint64_t segment = state->m_segmentSize;
        state->m_cWnd += static_cast<uint32_t>(segments * segment * segment / state->m_cWnd.Get());
    }
};

NS_OBJECT_ENSURE_REGISTERED(TcpDctcpGrowing);

// What the bottleneck's queue discipline did after the warm-up.
struct Watch
{
    uint64_t arrived = 0;
    std::map<std::string, uint64_t> dropped;
    std::map<std::string, uint64_t> marked;
    std::vector<double> waits;
    bool measuring = false;

    void Arrived(Ptr<const QueueDiscItem>)
    {
        arrived += measuring;
    }

    void Left(Time wait)
    {
        if (measuring)
        {
            waits.push_back(wait.GetSeconds());
        }
    }

    // A packet that is dropped at the head has left the queue a moment ago: its waiting time does not count.
    void DroppedAtHead(Ptr<const QueueDiscItem>, const char* reason)
    {
        if (measuring)
        {
            waits.pop_back();
            ++dropped[reason];
        }
    }

    void DroppedOnArrival(Ptr<const QueueDiscItem>, const char* reason)
    {
        if (measuring)
        {
            ++arrived;
            ++dropped[reason];
        }
    }

    void Marked(Ptr<const QueueDiscItem>, const char* reason)
    {
        if (measuring)
        {
            ++marked[reason];
        }
    }
};

Setting
ReadSetting(int argc, char* argv[])
{
    Setting setting;
    CommandLine command(__FILE__);
    command.AddValue("rate", "bottleneck, bit/s", setting.rate);
    command.AddValue("delay", "bottleneck, one way, s", setting.delay);
    command.AddValue("accessRate", "every host's link, bit/s", setting.accessRate);
    command.AddValue("accessDelay", "every host's link, one way, s", setting.accessDelay);
    command.AddValue("starts", "when each flow starts, s, with commas", setting.starts);
    command.AddValue("disc", "the bottleneck's queue discipline, with its attributes", setting.disc);
    command.AddValue("warmup", "counts begin here, s", setting.warmup);
    command.AddValue("duration", "simulated seconds", setting.duration);
    command.AddValue("seed", "of the generator", setting.seed);
    command.Parse(argc, argv);
    return setting;
}

std::vector<double>
Numbers(const std::string& text)
{
    std::vector<double> numbers;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, ',');)
    {
        numbers.push_back(std::stod(word));
    }
    return numbers;
}

NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, double rate, double delay)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(std::llround(rate * WITH_PPP))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
    return link.Install(a, b);
}

// Gives both ends of a link an address. Assigning them installs ns-3's default queue discipline, which goes again.
Ipv4InterfaceContainer
AssignAddresses(Ipv4AddressHelper& addresses, const NetDeviceContainer& devices)
{
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(devices);
    return interfaces;
}

// The queue discipline is held back from the moment at which the device begins to send a packet until it has sent it.
void
HandOverWhenIdle(Ptr<NetDevice> device)
{
    Ptr<NetDeviceQueue> gate = device->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0);
    device->TraceConnectWithoutContext("PhyTxBegin",
                                       Callback<void, Ptr<const Packet>>([gate](Ptr<const Packet>) { gate->Stop(); }));
    device->TraceConnectWithoutContext("PhyTxEnd", Callback<void, Ptr<const Packet>>([gate](Ptr<const Packet>) {
                                           Simulator::ScheduleNow(&NetDeviceQueue::Wake, gate);
                                       }));
}

Ptr<QueueDisc>
Install(const std::string& description, Ptr<NetDevice> device, Watch& watch)
{
    ObjectFactory factory;
    std::istringstream(description) >> factory;
    Ptr<QueueDisc> disc = factory.Create<QueueDisc>();
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, disc);
    disc->TraceConnectWithoutContext("Enqueue", MakeCallback(&Watch::Arrived, &watch));
    disc->TraceConnectWithoutContext("SojournTime", MakeCallback(&Watch::Left, &watch));
    disc->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&Watch::DroppedAtHead, &watch));
    disc->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Watch::DroppedOnArrival, &watch));
    disc->TraceConnectWithoutContext("Mark", MakeCallback(&Watch::Marked, &watch));
    return disc;
}

std::vector<uint64_t>
Received(const ApplicationContainer& receivers)
{
    std::vector<uint64_t> bytes;
    for (uint32_t i = 0; i < receivers.GetN(); ++i)
    {
        bytes.push_back(DynamicCast<PacketSink>(receivers.Get(i))->GetTotalRx());
    }
    return bytes;
}

void
PrintCounts(const char* name, const std::map<std::string, uint64_t>& counts)
{
    std::cout << ", \"" << name << "\": {";
    const char* comma = "";
    for (const auto& [reason, count] : counts)
    {
        std::cout << comma << "\"" << reason << "\": " << count;
        comma = ", ";
    }
    std::cout << "}";
}

void
Print(const std::vector<uint64_t>& before, const std::vector<uint64_t>& after, Watch& watch)
{
    std::cout << "{\"bytes\": [";
    for (size_t i = 0; i < after.size(); ++i)
    {
        std::cout << (i ? ", " : "") << after[i] - before[i];
    }
    std::cout << "], \"arrived\": " << watch.arrived;
    PrintCounts("dropped", watch.dropped);
    PrintCounts("marked", watch.marked);
    std::vector<double>& waits = watch.waits;
    const double mean = waits.empty() ? 0 : std::accumulate(waits.begin(), waits.end(), 0.0) / waits.size();
    double p99 = 0;
    if (!waits.empty())
    {
        const auto place = waits.begin() + static_cast<size_t>(std::ceil(0.99 * waits.size())) - 1;
        std::nth_element(waits.begin(), place, waits.end());
        p99 = *place;
    }
    std::cout << ", \"mean_s\": " << mean << ", \"p99_s\": " << p99 << "}\n";
}

} // namespace

int
main(int argc, char* argv[])
{
    const Setting setting = ReadSetting(argc, argv);
    const std::vector<double> starts = Numbers(setting.starts);
    RngSeedManager::SetSeed(setting.seed);

    NodeContainer routers(2);
    NodeContainer hosts(starts.size());
    NodeContainer peers(starts.size());
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(NodeContainer(routers, hosts, peers));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    NetDeviceContainer bottleneck = Connect(routers.Get(0), routers.Get(1), setting.rate, setting.delay);
    AssignAddresses(addresses, bottleneck);
    Watch watch;
    Ptr<QueueDisc> disc = Install(setting.disc, bottleneck.Get(0), watch);
    HandOverWhenIdle(bottleneck.Get(0));

    ApplicationContainer receivers;
    for (uint32_t i = 0; i < starts.size(); ++i)
    {
        NetDeviceContainer near = Connect(hosts.Get(i), routers.Get(0), setting.accessRate, setting.accessDelay);
        NetDeviceContainer far = Connect(routers.Get(1), peers.Get(i), setting.accessRate, setting.accessDelay);
        AssignAddresses(addresses, near);
        const Ipv4Address peer = AssignAddresses(addresses, far).GetAddress(1);
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(peer, PORT));
        sender.SetAttribute("MaxBytes", UintegerValue(0));
        sender.Install(hosts.Get(i)).Start(Seconds(starts[i]));
        PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        receivers.Add(receiver.Install(peers.Get(i)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(setting.warmup));
    Simulator::Run();
    const std::vector<uint64_t> before = Received(receivers);
    watch.measuring = true;
    Simulator::Stop(Seconds(setting.duration - setting.warmup));
    Simulator::Run();
    Print(before, Received(receivers), watch);
    Simulator::Destroy();
    return 0;
}
