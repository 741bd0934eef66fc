#pragma once

#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <unordered_map>

namespace
{

using namespace ns3;

// Routes without a search, however many flows there are: one for each destination, or one for all that are elsewhere.
class Routes : public Ipv4RoutingProtocol
{
  public:
    void AddLocal(Ipv4Address address)
    {
        m_local = address;
    }

    void Add(Ipv4Address destination, Ptr<NetDevice> device)
    {
        m_routes[destination.Get()] = Through(device);
    }

    void AddDefault(Ptr<NetDevice> device)
    {
        m_default = Through(device);
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno&) override
    {
        return To(header);
    }

    // ns-3 hands over callbacks by value up to some release and by reference after it; one of these two is its own.
    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                    UnicastForwardCallback forward, MulticastForwardCallback, LocalDeliverCallback deliver,
                    ErrorCallback)
    {
        return Decide(packet, header, device, forward, deliver);
    }

    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                    const UnicastForwardCallback& forward, const MulticastForwardCallback&,
                    const LocalDeliverCallback& deliver, const ErrorCallback&)
    {
        return Decide(packet, header, device, forward, deliver);
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

  private:
    Ptr<Ipv4Route> Through(Ptr<NetDevice> device) const
    {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetSource(m_local);
        route->SetGateway(Ipv4Address::GetZero());
        route->SetOutputDevice(device);
        return route;
    }

    Ptr<Ipv4Route> To(const Ipv4Header& header) const
    {
        const auto found = m_routes.find(header.GetDestination().Get());
        return found == m_routes.end() ? m_default : found->second;
    }

    bool Decide(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                const UnicastForwardCallback& forward, const LocalDeliverCallback& deliver) const
    {
        if (header.GetDestination() == m_local)
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
        }
        else
        {
            forward(To(header), packet, header);
        }
        return true;
    }

    std::unordered_map<uint32_t, Ptr<Ipv4Route>> m_routes;
    Ptr<Ipv4Route> m_default;
    Ipv4Address m_local;
    Ptr<Ipv4> m_ipv4;
};

Ptr<Routes>
RoutesOf(Ptr<Node> node)
{
    return DynamicCast<Routes>(node->GetObject<Ipv4>()->GetRoutingProtocol());
}

} // namespace
