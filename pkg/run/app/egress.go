package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func upstreamLists(cfg config.Config) egress.Lists {
	return egress.Lists{Allow: cfg.UpstreamAllow, Deny: cfg.UpstreamDeny, Sockets: cfg.UpstreamSockets}
}

// thisMachine returns the names and addresses by which others, or an Envoy here, may
// reach this machine.
func thisMachine(cfg config.Config) (egress.Machine, error) {
	m := egress.Machine{Names: append([]string{}, cfg.APIHosts...)}
	if name, err := os.Hostname(); err == nil {
		m.Names = append(m.Names, name)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return m, fmt.Errorf("listing the addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			m.Addrs = append(m.Addrs, prefix.Addr().Unmap())
		}
	}
	return m, nil
}

// addChecks adds the checks that run after a write. The addresses of the program are
// known once it serves.
func (p *controlPlane) addChecks(
	ctx context.Context, cfg config.Config, registry *status.Registry, to *rest.Options,
) error {
	machine, err := thisMachine(cfg)
	if err != nil {
		return err
	}
	// A transaction has no context of its own; the program's outlives it.
	ctx = context.WithoutCancel(ctx)
	rules := func() precheck.Rules {
		return precheck.Rules{
			Upstreams: upstreamLists(cfg), Lua: cfg.AllowLua, Machine: machine,
			OwnAddresses: p.listenAddresses(), Unseal: p.store.Unseal,
			Open: func() (bool, error) {
				some, err := p.store.HasTokens(ctx)
				return !some && cfg.APIAdminToken == "", err
			},
		}
	}
	to.Check = func(r store.Reader, written store.Changes) error { return rules().Check(r, written) }
	to.CheckRollback = func(r store.Reader, written store.Changes) error {
		restoring := rules()
		restoring.Restoring = true
		return restoring.Check(r, written)
	}
	to.Warn = func(r store.Reader, written store.Changes) ([]string, error) { return rules().Warnings(r, written) }
	return p.followCertificates(cfg, registry, to)
}

// listenAddresses returns the addresses where the program listens.
func (p *controlPlane) listenAddresses() []egress.OwnAddress {
	list := []egress.OwnAddress{
		{What: "Gatehouse's own API", Addr: addrPort(p.api.listener.Addr().String())},
		{What: "Gatehouse's own xDS server", Addr: addrPort(p.xds.listener.Addr().String())},
	}
	if p.admin != "" {
		list = append(list, egress.OwnAddress{What: "Envoy's admin endpoint", Addr: addrPort(p.admin)})
	}
	if p.debug != nil {
		list = append(list,
			egress.OwnAddress{What: "Gatehouse's own debug server", Addr: addrPort(p.debug.listener.Addr().String())})
	}
	return list
}

// foreignRules are the rules for addresses that the tenants of a cluster write; nil without a cluster.
func (p *controlPlane) foreignRules(cfg config.Config) (*egress.Foreign, error) {
	if cfg.Mode != config.ModeKubernetes {
		return nil, nil
	}
	machine, err := thisMachine(cfg)
	if err != nil {
		return nil, err
	}
	places := func() []egress.OwnAddress {
		list := p.listenAddresses()
		for _, proxy := range p.kube.Proxies() {
			list = append(list, precheck.Listeners(proxy)...)
		}
		return list
	}
	return &egress.Foreign{
		Allow: cfg.UpstreamAllow, Machine: machine, OwnAddresses: places, ClusterDomain: clusterDomain(),
	}, nil
}

// clusterDomain returns the domain of the cluster that this Pod is in; the default elsewhere.
func clusterDomain() string {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return egress.DefaultClusterDomain // there is no resolver, as in an empty image
	}
	return cmp.Or(egress.ClusterDomainOf(string(text)), egress.DefaultClusterDomain)
}

// addrPort reads the address of a listener, which is never a name.
func addrPort(addr string) netip.AddrPort {
	a, _ := netip.ParseAddrPort(addr)
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
