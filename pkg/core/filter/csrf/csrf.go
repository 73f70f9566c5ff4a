// Package csrf is http_filter_csrf: it refuses changing requests from pages of other sites.
package csrf

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	csrfv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/csrf/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name = "envoy.filters.http.csrf"
	// details are Envoy's for a refusal.
	details                   = "csrf_origin_mismatch"
	key     seam.Key[*Policy] = "csrf"
)

const refused = "changes are allowed only from pages of this host or of a listed host\n"

// Policy refuses changing requests, except from pages of the host itself and of Hosts.
type Policy struct {
	// Hosts are sorted. A host has a port if it is not the default.
	Hosts []string `json:"hosts,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterCSRF, Config: seam.Adds(key, combine),
		Name: name, Listener: sameHost, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages),
		Refuses: map[string]string{details: model.FilterCSRF},
		Replies: seam.ReplyTo(http.StatusForbidden, details, http.StatusForbidden, refused),
		Refuse:  refuse, Describe: describe,
	}
}

// combine returns a policy for pages that both allow.
func combine(before *Policy, f *model.CSRFFilter, _ seam.Place) (*Policy, error) {
	var hosts []string
	for _, o := range f.Origins {
		_, host, _ := strings.Cut(o, "://") // Envoy does not compare the scheme
		if before == nil || slices.Contains(before.Hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return &Policy{Hosts: slices.Compact(hosts)}, nil
}

// sameHost allows changing requests only from pages of the same host.
func sameHost(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &csrfv3.CsrfPolicy{FilterEnabled: seam.Always()}}}
}

func messages(p *Policy) ([]seam.Message, error) {
	out := &csrfv3.CsrfPolicy{FilterEnabled: seam.Always()}
	for _, host := range p.Hosts {
		out.AdditionalOrigins = append(out.AdditionalOrigins, &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: host},
		})
	}
	return []seam.Message{{Name: name, Config: out}}, nil
}

func refuse(r seam.Request) (*seam.Refusal, error) {
	ok, why, err := isOwnPage(r)
	if err != nil || ok {
		return nil, err
	}
	return &seam.Refusal{
		Code: "cross_site_refused", Message: "an http_filter_csrf refuses it: " + why,
		Details: details, Status: http.StatusForbidden, Body: "Invalid origin",
	}, nil
}

func describe(r seam.Request) (string, error) {
	_, why, err := isOwnPage(r)
	return "allows it: " + why, err
}

// isOwnPage reports whether the request changes nothing or comes from an allowed page, and why
// (CsrfFilter::decodeHeaders).
func isOwnPage(r seam.Request) (ok bool, why string, err error) {
	if method := r.Header(seam.Method); !slices.Contains([]string{"POST", "PUT", "DELETE", "PATCH"}, method) {
		return true, method + " changes nothing", nil
	}
	policy, err := seam.MessageOf(name, r, &csrfv3.CsrfPolicy{})
	if err != nil {
		return false, "", err
	}
	header := "Origin"
	value := r.Header("origin")
	if value == "" {
		header, value = "Referer", r.Header("referer")
	}
	from := hostAndPort(value)
	switch from {
	case "", "null":
		return false, "neither Origin nor Referer names a host", nil
	case r.Header(seam.Authority):
		return true, fmt.Sprintf("its %s is of the host %s itself", header, from), nil
	}
	for _, m := range policy.GetAdditionalOrigins() {
		if matches, _, err := seam.Matches(m, from); matches || err != nil {
			return matches, fmt.Sprintf("its %s is of %s, which is listed", header, from), err
		}
	}
	why = fmt.Sprintf("its %s is of %s, which is neither the host %s nor listed", header, from, r.Header(seam.Authority))
	return false, why, nil
}

// hostAndPort returns the part of a URL that Envoy compares. Envoy compares text that it cannot parse unchanged.
func hostAndPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	return u.Host
}
