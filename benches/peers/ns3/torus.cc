// TCP and UDP over a torus of routers in ns-3: what ns-3 can do that comes closest to perhop's large networks.
//
// Routers stand in `size` rows and columns, with a link to each of four neighbours. Each has TCP flows to the router `steps` columns and rows on
// (a bulk transfer whose window is limited) and a UDP flow of constant rate to the router as far in the other diagonal. ns-3 has no
// weighted fair queueing: each port has a PrioQueueDisc of two bands, UDP before TCP, both RED. Routes are set by hand: along the row
// first, then along the column, so no time goes into ns-3's routing.
//
// Made for speed as far as ns-3 goes: no traces, no checksums, static routes.
//
// Usage: torus --size=10 --tcp=4 --duration=10
// Prints one line: packets that came to the queues of links, and the bytes that receivers got.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "routes.h"

#include <cstdio>
#include <map>
#include <utility>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t HEADER_BYTES = 40;
constexpr uint32_t UDP_HEADER_BYTES = 28;
constexpr uint16_t PORT = 5000;
constexpr uint8_t EXPEDITED = 0xb8; // DSCP 46

struct Setting
{
    uint32_t size = 10;
    uint32_t steps = 3;
    uint32_t tcp = 4;
    uint32_t window = 12;
    uint32_t packet = 1000;
    uint32_t datagram = 500;
    double udpRate = 200e3;
    double rate = 10e6;
    double delay = 0.002;
    double duration = 10;
    uint32_t seed = 1;
};

// The first band is for UDP, by codepoint.
class ByCodepoint : public PacketFilter
{
  private:
    bool CheckProtocol(Ptr<QueueDiscItem> item) const override
    {
        return DynamicCast<Ipv4QueueDiscItem>(item) != nullptr;
    }

    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        return DynamicCast<Ipv4QueueDiscItem>(item)->GetHeader().GetTos() == EXPEDITED ? 0 : 1;
    }
};

Setting
ReadSetting(int argc, char* argv[])
{
    Setting setting;
    CommandLine command(__FILE__);
    command.AddValue("size", "rows and columns", setting.size);
    command.AddValue("steps", "rows and columns that a flow passes", setting.steps);
    command.AddValue("tcp", "TCP flows of each router", setting.tcp);
    command.AddValue("window", "receiver's, packets", setting.window);
    command.AddValue("packet", "of TCP, bytes on the wire", setting.packet);
    command.AddValue("datagram", "of UDP, bytes on the wire", setting.datagram);
    command.AddValue("udpRate", "of each UDP flow, bit/s", setting.udpRate);
    command.AddValue("rate", "of links, bit/s", setting.rate);
    command.AddValue("delay", "of links, seconds", setting.delay);
    command.AddValue("duration", "simulated seconds", setting.duration);
    command.AddValue("seed", "of the generator", setting.seed);
    command.Parse(argc, argv);
    return setting;
}

void
SetTcp(const Setting& setting)
{
    const uint32_t segment = setting.packet - HEADER_BYTES;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpNewReno")));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(setting.window * segment));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(setting.window * segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
}

Ptr<QueueDisc>
InstallQueues(const Setting& setting, Ptr<NetDevice> device)
{
    TrafficControlHelper control;
    const uint16_t root = control.SetRootQueueDisc("ns3::PrioQueueDisc");
    const TrafficControlHelper::ClassIdList bands = control.AddQueueDiscClasses(root, 2, "ns3::QueueDiscClass");
    for (uint16_t band : bands)
    {
        control.AddChildQueueDisc(root, band, "ns3::RedQueueDisc",
                                  "MinTh", DoubleValue(20),
                                  "MaxTh", DoubleValue(60),
                                  "LInterm", DoubleValue(10),
                                  "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 100)),
                                  "MeanPktSize", UintegerValue(setting.packet),
                                  "LinkBandwidth", DataRateValue(DataRate(static_cast<uint64_t>(setting.rate))),
                                  "LinkDelay", TimeValue(Seconds(setting.delay)));
    }
    Ptr<QueueDisc> queue = control.Install(device).Get(0);
    queue->AddPacketFilter(CreateObject<ByCodepoint>());
    return queue;
}

} // namespace

int
main(int argc, char* argv[])
{
    const Setting setting = ReadSetting(argc, argv);
    RngSeedManager::SetSeed(setting.seed);
    SetTcp(setting);

    const uint32_t size = setting.size;
    const auto number = [size](uint32_t row, uint32_t column) { return row % size * size + column % size; };
    NodeContainer routers(size * size);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(routers);
    for (auto router = routers.Begin(); router != routers.End(); ++router)
    {
        (*router)->GetObject<Ipv4>()->SetRoutingProtocol(CreateObject<Routes>());
    }

    // All routers are alike: each has a link to the right and one downward.
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(setting.rate))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(setting.delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ptr<QueueDisc>> queues;
    std::vector<Ipv4Address> address(size * size);
    std::map<std::pair<uint32_t, uint32_t>, Ptr<NetDevice>> towards;
    for (uint32_t row = 0; row < size; ++row)
    {
        for (uint32_t column = 0; column < size; ++column)
        {
            const uint32_t here = number(row, column);
            for (uint32_t there : {number(row, column + 1), number(row + 1, column)})
            {
                NetDeviceContainer ends = link.Install(routers.Get(here), routers.Get(there));
                queues.push_back(InstallQueues(setting, ends.Get(0)));
                queues.push_back(InstallQueues(setting, ends.Get(1)));
                Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
                addresses.NewNetwork();
                address[here] = interfaces.GetAddress(0);
                towards[{here, there}] = ends.Get(0);
                towards[{there, here}] = ends.Get(1);
            }
        }
    }

    // Along the row the nearer way round, then along the column.
    const auto step = [size](uint32_t from, uint32_t to) {
        const uint32_t ahead = (to + size - from) % size;
        return ahead == 0 ? from : ahead <= size / 2 ? (from + 1) % size : (from + size - 1) % size;
    };
    for (uint32_t here = 0; here < size * size; ++here)
    {
        Ptr<Routes> routes = RoutesOf(routers.Get(here));
        routes->AddLocal(address[here]);
        for (uint32_t there = 0; there < size * size; ++there)
        {
            if (here != there)
            {
                const uint32_t column = step(here % size, there % size);
                const uint32_t row = column == here % size ? step(here / size, there / size) : here / size;
                routes->Add(address[there], towards[{here, number(row, column)}]);
            }
        }
    }

    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    ApplicationContainer receivers;
    for (uint32_t row = 0; row < size; ++row)
    {
        for (uint32_t column = 0; column < size; ++column)
        {
            Ptr<Node> from = routers.Get(number(row, column));
            const uint32_t far = number(row + setting.steps, column + setting.steps);
            PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
            receivers.Add(sink.Install(routers.Get(far)));
            for (uint32_t n = 0; n < setting.tcp; ++n)
            {
                BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(address[far], PORT));
                sender.SetAttribute("MaxBytes", UintegerValue(0));
                sender.SetAttribute("SendSize", UintegerValue(setting.packet - HEADER_BYTES));
                sender.Install(from).Start(Seconds(start->GetValue(0, 1)));
            }
            const uint32_t across = number(row + setting.steps, column + size - setting.steps);
            InetSocketAddress to(address[across], PORT);
            to.SetTos(EXPEDITED);
            OnOffHelper datagrams("ns3::UdpSocketFactory", to);
            const double payload = setting.datagram - UDP_HEADER_BYTES;
            datagrams.SetConstantRate(DataRate(static_cast<uint64_t>(setting.udpRate * payload / setting.datagram)),
                                      static_cast<uint32_t>(payload));
            datagrams.Install(from).Start(Seconds(start->GetValue(0, 1)));
            PacketSinkHelper drain("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
            receivers.Add(drain.Install(routers.Get(across)));
        }
    }

    Simulator::Stop(Seconds(setting.duration));
    Simulator::Run();

    uint64_t hops = 0;
    for (const Ptr<QueueDisc>& queue : queues)
    {
        hops += queue->GetStats().nTotalReceivedPackets;
    }
    uint64_t delivered = 0;
    for (uint32_t n = 0; n < receivers.GetN(); ++n)
    {
        delivered += DynamicCast<PacketSink>(receivers.Get(n))->GetTotalRx();
    }
    std::printf("hops=%llu delivered_bytes=%llu\n", static_cast<unsigned long long>(hops),
                static_cast<unsigned long long>(delivered));
    Simulator::Destroy();
    return 0;
}
