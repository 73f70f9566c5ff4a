package model

import "time"

// AffinityFilter sends the requests of a client to the same upstream of a route.
// +page=affinity.md
// +example={cookie: shop-node, ttl: 1h}
type AffinityFilter struct {
	// hash: few clients move when upstreams come and go. exact: no client moves while its upstream is healthy, and clients
	// see, and can choose, the address of their upstream. Default: hash.
	// +enum=[hash, exact]
	Mode string `json:"mode"`
	// What identifies a client. Default: header if header is set, otherwise cookie.
	// +enum=[cookie, header, address]
	By string `json:"by"`
	// The name of the cookie, which the gateway sets. Default: gh-node.
	Cookie string `json:"cookie"`
	// How long the cookie lives, such as 1h. Absent means until the browser closes.
	// +anyOf=[{type: string}]
	// +example=1h
	TTL Duration `json:"ttl"`
	// The header that identifies a client. A request without it goes to any upstream.
	// +maxLength=maxHeaderName
	Header string `json:"header"`
}

// The values of AffinityFilter.Mode.
const (
	AffinityHash  = "hash"
	AffinityExact = "exact"
)

// The values of AffinityFilter.By.
const (
	ByCookie  = "cookie"
	ByHeader  = "header"
	ByAddress = "address"
)

const (
	affinityCookie = "gh-node"
	mostAffinity   = 365 * 24 * time.Hour
)

func readAffinity(v *validator, at, _ string, config JSON) Spec {
	var f AffinityFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	f.setDefaults()
	v.oneOf(at+".mode", f.Mode, []string{AffinityHash, AffinityExact})
	v.oneOf(at+".by", f.By, []string{ByCookie, ByHeader, ByAddress})
	if f.Mode == AffinityExact && f.By != ByCookie {
		v.add(at+".by", "%q requires mode hash: mode exact requires a cookie", f.By)
	}
	if f.By == ByCookie {
		v.token(at+".cookie", f.Cookie)
	} else if f.Cookie != "" || f.TTL != 0 {
		v.add(at+".cookie", "requires by cookie, and so does ttl")
	}
	if ttl := time.Duration(f.TTL); ttl != 0 && (ttl < time.Second || ttl > mostAffinity) {
		v.add(at+".ttl", "%s is not between 1s and 8760h", ttl)
	}
	switch {
	case f.By == ByHeader:
		v.matchedHeader(at+".header", f.Header)
	case f.Header != "":
		v.add(at+".header", "requires by header")
	}
	return &f
}

func (f *AffinityFilter) setDefaults() {
	if f.Mode == "" {
		f.Mode = AffinityHash
	}
	if f.By == "" && f.Header != "" {
		f.By = ByHeader
	}
	if f.By == "" {
		f.By = ByCookie
	}
	if f.By == ByCookie && f.Cookie == "" {
		f.Cookie = affinityCookie
	}
}

func (f *AffinityFilter) uses() []Key { return nil }

// checkWritten refuses a header whose name is too long.
func (f *AffinityFilter) checkWritten(v *validator, at string) { v.shortName(at+".header", f.Header) }

// Advice says what is legal and probably not meant.
func (f *AffinityFilter) Advice() []string {
	if f.Mode != AffinityExact {
		return nil
	}
	return []string{"shows clients the addresses of upstreams, and lets them choose one of the route's (mode exact); " +
		"mode hash does neither"}
}
