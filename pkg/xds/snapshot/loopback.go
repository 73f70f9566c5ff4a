package snapshot

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
)

// OnLoopback returns the snapshot for Envoys that must listen only on the loopback.
// Each listener keeps its port. All such Envoys share the snapshot. A listener that
// cannot be decoded is omitted.
func (s *Snapshot) OnLoopback() *Snapshot {
	if s.loopback == nil {
		return s
	}
	return s.loopback()
}

func (s *Snapshot) buildLoopback() *Snapshot {
	moved := *s
	moved.Listeners = nil
	for _, r := range s.Listeners {
		if m, err := toLoopback(r); err == nil {
			moved.Listeners = append(moved.Listeners, m)
		}
	}
	slices.SortFunc(moved.Listeners, byName)
	moved.loopback = nil
	return &moved
}

// toLoopback returns the listener on the loopback of its address family, under its
// name there. A listener that is already there is returned unchanged.
func toLoopback(r *Resource) (*Resource, error) {
	l := &listenerv3.Listener{}
	if err := proto.Unmarshal(r.Body.GetValue(), l); err != nil {
		return nil, fmt.Errorf("decoding listener %q: %w", r.Name, err)
	}
	at, ok := l.GetAddress().GetAddress().(*corev3.Address_SocketAddress)
	if !ok || len(l.GetAdditionalAddresses()) > 0 {
		return nil, fmt.Errorf("listener %q has an address that no loopback stands for", r.Name)
	}
	kind, named := strings.CutSuffix(l.GetName(), addressOf(at.SocketAddress))
	ip, err := netip.ParseAddr(at.SocketAddress.GetAddress())
	switch {
	case err != nil:
		return nil, fmt.Errorf("listener %q: %w", r.Name, err)
	case ip.IsLoopback():
		return r, nil
	case ip.Unmap().Is4():
		at.SocketAddress.Address = "127.0.0.1"
	default:
		at.SocketAddress.Address = "::1"
	}
	if named {
		l.Name = kind + addressOf(at.SocketAddress)
	}
	moved, err := NewListener(l, r.Objects...)
	if err == nil {
		moved.Clusters = r.Clusters
	}
	return moved, err
}

func addressOf(at *corev3.SocketAddress) string {
	return net.JoinHostPort(at.GetAddress(), strconv.FormatUint(uint64(at.GetPortValue()), 10))
}
