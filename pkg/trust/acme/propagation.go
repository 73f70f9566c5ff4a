package acme

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// lookEvery is the time between looks for a record, and lookTime bounds one.
	lookEvery = time.Second
	lookTime  = 5 * time.Second
)

// seen waits until all resolvers have a record. A wrong look costs nothing, while an authority counts its own.
func (w *Watch) seen(ctx context.Context, dns *model.ACMEDNS, r txtRecord) error {
	if dns.NoLookup {
		return nil
	}
	bound, cancel := context.WithTimeout(ctx, dns.PropagationTime())
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		missing := w.missing(bound, dns.Resolvers, r)
		if missing == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-bound.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &hookError{
				fmt.Sprintf("the record %s that the dns hook wrote cannot be seen after %s: %s", r.Name, dns.PropagationTime(), missing),
				"see whether the hook writes into the right zone, set dns.propagation, or name servers that know of it at once in dns.resolvers",
			}
		}
	}
}

// missing says which resolver does not have a record; empty if all have.
func (w *Watch) missing(ctx context.Context, resolvers []string, r txtRecord) string {
	if len(resolvers) == 0 {
		resolvers = []string{""}
	}
	for _, at := range resolvers {
		look, cancel := context.WithTimeout(ctx, lookTime)
		found, err := w.resolver(at).LookupTXT(look, r.Name+".")
		cancel()
		name := at
		if at == "" {
			name = "the resolver of the system"
		}
		var dns *net.DNSError
		switch {
		case slices.Contains(found, r.Value):
		case errors.As(err, &dns) && dns.IsNotFound, err == nil && len(found) == 0:
			return name + " has no such record"
		case err != nil:
			return strings.TrimSpace(name + " cannot be asked: " + plain(err.Error()))
		default:
			return name + " has another value"
		}
	}
	return ""
}

// resolver asks one server, or those of the system.
func (w *Watch) resolver(at string) *net.Resolver {
	if at == "" {
		return &net.Resolver{PreferGo: true}
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return w.opts.Dial(ctx, network, at)
	}}
}
