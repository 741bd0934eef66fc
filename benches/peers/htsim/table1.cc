// Bulk TCP on a dumbbell in csg-htsim: what htsim has that comes closest to the RI+O paper's Table 1 setting under RED.
//
//   host i --access-- edge ====bottleneck==== core --access-- peer i        (one host pair for each flow)
//
// Each link is a Queue and a Pipe for each direction; data packets wait at the bottleneck in a RandomQueue, which drops
// a tenth of those that arrive while `min` packets or more wait, by the queue itself and not its average. With
// --accessRate=inf the hosts are at the routers, and acknowledgements take a Pipe without a queue. Senders and receivers
// are htsim's own: NewReno without SACK, an acknowledgement of 40 bytes for every packet, a lowest timeout of 250 ms.
//
// Made for speed as far as htsim goes: no loggers, and no text while it runs.
//
// The command line is that of ../ns3/table1.cc; htsim has no max, maxP, weight, minRto and tcp.
// Prints one line: what the bottleneck's queue took in and sent.

#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "randomqueue.h"
#include "tcp.h"

#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace
{

constexpr mem_b UNLIMITED = mem_b{1} << 40;

using Options = std::map<std::string, std::string>;

Options
ReadOptions(int argc, char* argv[])
{
    Options options;
    for (int i = 1; i < argc; ++i)
    {
        const std::string word = argv[i];
        const size_t equals = word.find('=');
        if (word.rfind("--", 0) != 0 || equals == std::string::npos)
        {
            std::fprintf(stderr, "table1: not --KEY=VALUE: `%s`\n", argv[i]);
            std::exit(2);
        }
        options[word.substr(2, equals - 2)] = word.substr(equals + 1);
    }
    return options;
}

double
Number(const Options& options, const char* key)
{
    const auto found = options.find(key);
    if (found == options.end())
    {
        std::fprintf(stderr, "table1: --%s is missing\n", key);
        std::exit(2);
    }
    return std::stod(found->second);
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

// The queue of the bottleneck, which counts.
class Bottleneck : public RandomQueue
{
  public:
    using RandomQueue::RandomQueue;

    void receivePacket(Packet& packet) override
    {
        ++arrived;
        RandomQueue::receivePacket(packet);
    }

    void completeService() override
    {
        ++sent;
        RandomQueue::completeService();
    }

    unsigned long long arrived = 0;
    unsigned long long sent = 0;
};

// One direction of a link without a limit.
struct Link
{
    Link(double rate, double delay, EventList& events)
        : queue(static_cast<linkspeed_bps>(rate), UNLIMITED, events, nullptr), pipe(timeFromSec(delay), events)
    {
    }

    Queue queue;
    Pipe pipe;
};

void
Append(Route& route, Link& link)
{
    route.push_back(&link.queue);
    route.push_back(&link.pipe);
}

// The private links of one host pair, in the order in which a data packet and its acknowledgement take them.
struct Access
{
    Access(double rate, double delay, EventList& events)
        : fromHost(rate, delay, events), toPeer(rate, delay, events), fromPeer(rate, delay, events),
          toHost(rate, delay, events)
    {
    }

    Link fromHost, toPeer, fromPeer, toHost;
};

struct Flow
{
    explicit Flow(EventList& events)
        : source(nullptr, nullptr, events)
    {
    }

    TcpSrc source;
    TcpSink sink;
    Route forward, back;
};

} // namespace

int
main(int argc, char* argv[])
{
    const Options options = ReadOptions(argc, argv);
    const auto number = [&options](const char* key) { return Number(options, key); };
    const auto packets = [&number](const char* key) { return number(key) * number("packet"); };
    if (number("delayedAck") != 0)
    {
        std::fprintf(stderr, "table1: htsim delays no acknowledgements: --delayedAck=0\n");
        return 2;
    }
    // htsim says on this stream when a timer expires.
    std::cout.setstate(std::ios::failbit);

    EventList events;
    events.setEndtime(timeFromSec(number("duration")));
    srand(static_cast<unsigned>(number("seed")));
    Packet::set_packet_size(static_cast<int>(number("packet")));

    Bottleneck bottleneck(static_cast<linkspeed_bps>(number("rate")), static_cast<mem_b>(packets("limit")), events,
                          nullptr, static_cast<mem_b>(packets("limit") - packets("min")));
    Pipe ahead(timeFromSec(number("delay")), events);
    Link reverse(number("rate"), number("delay"), events);
    TcpRtxTimerScanner timers(timeFromSec(number("tick")), events);

    const bool isPrivate = std::isfinite(number("accessRate"));
    std::deque<Access> links;
    std::deque<Flow> flows;
    for (const double delay : Numbers(options.at("accessDelays")))
    {
        Flow& flow = flows.emplace_back(events);
        if (isPrivate)
        {
            Access& access = links.emplace_back(number("accessRate"), delay, events);
            Append(flow.forward, access.fromHost);
            flow.forward.push_back(&bottleneck);
            flow.forward.push_back(&ahead);
            Append(flow.forward, access.toPeer);
            Append(flow.back, access.fromPeer);
            Append(flow.back, reverse);
            Append(flow.back, access.toHost);
        }
        else
        {
            flow.forward.push_back(&bottleneck);
            flow.forward.push_back(&ahead);
            flow.back.push_back(&reverse.pipe);
        }
        flow.forward.push_back(&flow.sink);
        flow.back.push_back(&flow.source);

        flow.source.set_cwnd(static_cast<uint64_t>(packets("initialWindow")));
        flow.source.set_ssthresh(static_cast<uint64_t>(packets("window")));
        flow.source._maxcwnd = static_cast<uint32_t>(packets("window"));
        timers.registerTcp(flow.source);
        const double start = number("startFrom") + drand() * (number("startTo") - number("startFrom"));
        flow.source.connect(flow.forward, flow.back, flow.sink, timeFromSec(start));
    }

    while (events.doNextEvent())
    {
    }
    std::printf("arrived=%llu sent=%llu\n", bottleneck.arrived, bottleneck.sent);
    return 0;
}
