package crd

import (
	"net/netip"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// writeBackend sets the fields of a backend that differ from the defaults of its upstream.
func writeBackend(u *model.Upstream, b *gatewayv1.Backend) {
	if !u.IsDNSName() && u.SpeaksTLS() && u.ValidationSubjectName == "" {
		c := *u
		c.ValidationSubjectName, u = u.IP, &c // in the cluster the default is the name of the Service
	}
	mapping.WriteBackend(u, b, secretRef)
}

// sameAddress reports whether two texts are the same address.
func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX == nil && errY == nil {
		return x == y
	}
	return canonicalHost(a) == canonicalHost(b)
}
