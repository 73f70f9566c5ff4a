package scrape

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
)

// timeout is how long all engines together may take, including name resolution.
const timeout = 2 * time.Second

// Counts are the counts of engines in one domain since each of them started.
type Counts struct {
	// Limits are the limits of the domain, without duplicates, sorted by path.
	Limits []Limit
	// Untold are the paths of limits that the engines' metrics do not contain.
	Untold []string
}

// Limit contains the counts of a limit, or of several that share their metrics.
type Limit struct {
	// Paths is one path, or the paths of all limits in the sum.
	Paths []string
	// Hits is how much was counted. Over is how much was over the limit, Near
	// how much was within it but above 80% of it, and Shadow the part of Over
	// that was allowed.
	Hits, Near, Over, Shadow uint64
}

// Engine is an engine that was queried.
type Engine struct {
	URL string
	// Address is the queried address of the URL's host; empty if the host has
	// none.
	Address string
	// Err is why its counts are missing; nil means that they are included.
	Err error
}

// Scraper queries engines. It is safe for concurrent use.
type Scraper struct {
	urls []*url.URL
}

// New returns a Scraper for the engines at some URLs. All addresses of a host
// name are engines.
func New(urls []*url.URL) *Scraper { return &Scraper{urls} }

// Counts queries every engine for its counts in some domains. It returns the
// sums, one for each domain, and the engines, in the order of the URLs.
func (s *Scraper) Counts(ctx context.Context, domains []*limits.Domain) ([]Counts, []Engine) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var prefixes []string
	for _, d := range domains {
		prefixes = append(prefixes, d.WireID()+"/")
	}
	engines := s.engines(ctx)
	read := make([]map[series]values, len(engines))
	var wg sync.WaitGroup
	for i := range engines {
		if e := &engines[i]; e.Err == nil {
			wg.Go(func() { read[i], e.Err = fetch(ctx, e.URL, e.Address, prefixes) })
		}
	}
	wg.Wait()

	counts := make([]Counts, len(domains))
	for i, d := range domains {
		list, untold := groups(d)
		counts[i].Untold = untold
		for _, g := range list {
			var sum values
			for _, r := range read {
				for kind, n := range r[g.series] {
					sum[kind] += n
				}
			}
			counts[i].Limits = append(counts[i].Limits, Limit{
				Paths: g.paths, Hits: sum[hits], Near: sum[near], Over: sum[over], Shadow: sum[shadow],
			})
		}
	}
	return counts, engines
}

// engines resolves the hosts of the URLs concurrently. An engine that several of
// them resolve to is queried once.
func (s *Scraper) engines(ctx context.Context) []Engine {
	found := make([][]Engine, len(s.urls))
	var wg sync.WaitGroup
	for i, u := range s.urls {
		wg.Go(func() {
			addresses, err := resolve(ctx, u)
			if err != nil {
				found[i] = []Engine{{URL: u.String(), Err: err}}
			}
			for _, a := range addresses {
				found[i] = append(found[i], Engine{URL: u.String(), Address: a})
			}
		})
	}
	wg.Wait()
	type endpoint struct{ address, path string }
	asked := map[endpoint]bool{}
	var list []Engine
	for i, u := range s.urls {
		list = append(list, slices.DeleteFunc(found[i], func(e Engine) bool {
			at := endpoint{e.Address, u.RequestURI()}
			twice := e.Err == nil && asked[at]
			asked[at] = true
			return twice
		})...)
	}
	return list
}

// resolve returns the addresses of a URL's host: the IPv4 addresses, or the IPv6
// addresses if there are no others, so that an engine with both is not counted
// twice.
func resolve(ctx context.Context, u *url.URL) (list []string, err error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, err
	}
	isV4 := func(ip netip.Addr) bool { return ip.Unmap().Is4() }
	if slices.ContainsFunc(ips, isV4) {
		ips = slices.DeleteFunc(ips, func(ip netip.Addr) bool { return !isV4(ip) })
	}
	for _, ip := range ips {
		list = append(list, net.JoinHostPort(ip.Unmap().String(), port))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
