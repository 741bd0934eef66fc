// Bulk TCP over RED on a dumbbell in ns-3: what ns-3 has that comes closest to the RI+O paper's Table 1 setting.
//
//   host i --access-- edge ====bottleneck==== core --access-- peer i        (one host pair for each flow)
//
// ns-3 has no meters and no RIO, so every packet meets one RED under the thresholds that the others use for OUT
// packets. The rest is that of the other programs: NewReno, an acknowledgement for every packet, `packet` bytes of IP
// on the wire (40 of them headers; ns-3's links add 2 of PPP). With --tcp=ns3::TcpCubic --delayedAck=0.04 the
// senders and receivers are ns-3's default ones. SACK stays on, as is ns-3's default: without it
// over a quarter of the packets that pass ns-3's bottleneck are repeats, so it would do other work, and more slowly.
//
// Made for speed as far as ns-3 goes: no traces, no checksums, no queue disciplines but RED, routes without a search.
//
// Usage: table1 --rate=20e6 --accessDelays=0.001,0.001,… …     bit/s, seconds, bytes, packets
// Prints one line: what the bottleneck's RED took in, sent and dropped, and the bytes that receivers got.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "routes.h"

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t HEADER_BYTES = 40;
constexpr uint16_t PORT = 5000;

struct Setting
{
    double rate = 20e6;
    double delay = 0.048;
    double accessRate = 100e6;
    std::string accessDelays = "0.001";
    double minTh = 347;
    double maxTh = 694;
    double maxP = 0.05;
    double weight = 0.002;
    uint32_t limit = 1000;
    uint32_t packet = 576;
    uint32_t window = 1000;
    uint32_t initialWindow = 2;
    double minRto = 0.2;
    double tick = 0.01;
    std::string tcp = "ns3::TcpNewReno";
    double delayedAck = 0;
    double startFrom = 0;
    double startTo = 1;
    double duration = 100;
    uint32_t seed = 1;
};

Setting
ReadSetting(int argc, char* argv[])
{
    Setting setting;
    CommandLine command(__FILE__);
    command.AddValue("rate", "bottleneck, bit/s", setting.rate);
    command.AddValue("delay", "bottleneck, one way", setting.delay);
    command.AddValue("accessRate", "every host's link, bit/s", setting.accessRate);
    command.AddValue("accessDelays", "of each flow's links, one way, with commas", setting.accessDelays);
    command.AddValue("min", "RED, packets", setting.minTh);
    command.AddValue("max", "RED, packets", setting.maxTh);
    command.AddValue("maxP", "drop probability at max", setting.maxP);
    command.AddValue("weight", "of the average", setting.weight);
    command.AddValue("limit", "packets", setting.limit);
    command.AddValue("packet", "bytes on the wire", setting.packet);
    command.AddValue("window", "receiver's, packets; also the initial ssthresh", setting.window);
    command.AddValue("initialWindow", "packets", setting.initialWindow);
    command.AddValue("minRto", "seconds", setting.minRto);
    command.AddValue("tick", "grain of the sender's clock", setting.tick);
    command.AddValue("tcp", "the congestion control's type", setting.tcp);
    command.AddValue("delayedAck", "timeout of acknowledgements for every other packet; 0: for every packet",
                     setting.delayedAck);
    command.AddValue("startFrom", "flows start uniformly from here", setting.startFrom);
    command.AddValue("startTo", "to here", setting.startTo);
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

void
SetTcp(const Setting& setting)
{
    const uint32_t segment = setting.packet - HEADER_BYTES;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(setting.tcp)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(setting.minRto)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(Seconds(setting.tick)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(setting.initialWindow));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(setting.window * segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(setting.window * segment));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(setting.window * segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(setting.delayedAck > 0 ? 2 : 1));
    if (setting.delayedAck > 0)
    {
        Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(setting.delayedAck)));
    }
}

NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, double rate, double delay, const char* queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue));
    return link.Install(a, b);
}

// A host with one link: its address, the way from its router to it, and the way from it to everywhere else.
void
Route(const NetDeviceContainer& link, uint32_t hostEnd, Ipv4Address address)
{
    Ptr<NetDevice> host = link.Get(hostEnd);
    Ptr<NetDevice> router = link.Get(1 - hostEnd);
    RoutesOf(host->GetNode())->AddLocal(address);
    RoutesOf(host->GetNode())->AddDefault(host);
    RoutesOf(router->GetNode())->Add(address, router);
}

// Gives both ends of a link an address. Assigning them installs ns-3's default queue discipline, which goes again.
Ipv4InterfaceContainer
AssignAddresses(Ipv4AddressHelper& addresses, const NetDeviceContainer& devices)
{
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    TrafficControlHelper control;
    control.Uninstall(devices);
    return interfaces;
}

Ptr<QueueDisc>
InstallRed(const Setting& setting, Ptr<NetDevice> device)
{
    TrafficControlHelper control;
    control.SetRootQueueDisc("ns3::RedQueueDisc",
                             "MinTh", DoubleValue(setting.minTh),
                             "MaxTh", DoubleValue(setting.maxTh),
                             "LInterm", DoubleValue(1 / setting.maxP),
                             "QW", DoubleValue(setting.weight),
                             "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, setting.limit)),
                             "MeanPktSize", UintegerValue(setting.packet),
                             "LinkBandwidth", DataRateValue(DataRate(static_cast<uint64_t>(setting.rate))),
                             "LinkDelay", TimeValue(Seconds(setting.delay)),
                             "Gentle", BooleanValue(false),
                             "Wait", BooleanValue(false));
    return control.Install(device).Get(0);
}

} // namespace

int
main(int argc, char* argv[])
{
    const Setting setting = ReadSetting(argc, argv);
    const std::vector<double> delays = Numbers(setting.accessDelays);
    RngSeedManager::SetSeed(setting.seed);
    SetTcp(setting);

    NodeContainer routers(2);
    NodeContainer hosts(delays.size());
    NodeContainer peers(delays.size());
    const NodeContainer nodes(routers, hosts, peers);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    for (auto node = nodes.Begin(); node != nodes.End(); ++node)
    {
        (*node)->GetObject<Ipv4>()->SetRoutingProtocol(CreateObject<Routes>());
    }

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const char* unlimited = "1000000p";
    NetDeviceContainer bottleneck = Connect(routers.Get(0), routers.Get(1), setting.rate, setting.delay, "1p");
    bottleneck.Get(1)->SetAttribute("TxQueue", PointerValue(CreateObjectWithAttributes<DropTailQueue<Packet>>(
                                                   "MaxSize", StringValue(unlimited))));
    AssignAddresses(addresses, bottleneck);
    RoutesOf(routers.Get(0))->AddDefault(bottleneck.Get(0));
    RoutesOf(routers.Get(1))->AddDefault(bottleneck.Get(1));
    Ptr<QueueDisc> red = InstallRed(setting, bottleneck.Get(0));

    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    ApplicationContainer receivers;
    for (uint32_t i = 0; i < delays.size(); ++i)
    {
        NetDeviceContainer near = Connect(hosts.Get(i), routers.Get(0), setting.accessRate, delays[i], unlimited);
        NetDeviceContainer far = Connect(routers.Get(1), peers.Get(i), setting.accessRate, delays[i], unlimited);
        Route(near, 0, AssignAddresses(addresses, near).GetAddress(0));
        const Ipv4Address peer = AssignAddresses(addresses, far).GetAddress(1);
        Route(far, 1, peer);

        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(peer, PORT));
        sender.SetAttribute("MaxBytes", UintegerValue(0));
        sender.SetAttribute("SendSize", UintegerValue(setting.packet - HEADER_BYTES));
        sender.Install(hosts.Get(i)).Start(Seconds(start->GetValue(setting.startFrom, setting.startTo)));
        PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        receivers.Add(receiver.Install(peers.Get(i)));
    }

    Simulator::Stop(Seconds(setting.duration));
    Simulator::Run();

    uint64_t delivered = 0;
    for (uint32_t i = 0; i < receivers.GetN(); ++i)
    {
        delivered += DynamicCast<PacketSink>(receivers.Get(i))->GetTotalRx();
    }
    const QueueDisc::Stats& stats = red->GetStats();
    std::printf("arrived=%u sent=%u dropped=%u delivered_bytes=%llu\n",
                stats.nTotalReceivedPackets, stats.nTotalSentPackets, stats.nTotalDroppedPackets,
                static_cast<unsigned long long>(delivered));
    Simulator::Destroy();
    return 0;
}
