package model

import "strings"

// RefusalsConfig replaces the page that browsers get when a proxy refuses a request. If several global configs of the
// type apply to a proxy, the first one by name does.
// +page=refusals.md#a-page-of-your-own
// +example={html: "<!DOCTYPE html><title>Sorry</title><p>{title} (status {status}, request {request_id})"}
type RefusalsConfig struct {
	// The page, in bytes as they are, apart from {title}, {status} and {request_id}: what is wrong, the status of the
	// response, and the request ID. Each may be there four times.
	// +required
	// +minLength=1
	// +maxLength=maxRefusalPage
	HTML string `json:"html"`
}

// Envoy holds a page for each listener, and evaluates each of its values for each refusal.
const maxRefusalPage, maxOfValue = 65536, 4

func readRefusals(v *validator, at, _ string, config JSON) Spec {
	var c RefusalsConfig
	if !v.decode(at, config, &c) {
		return &c
	}
	switch n := len(c.HTML); {
	case n == 0:
		v.add(at+".html", "is required")
	case n > maxRefusalPage:
		v.add(at+".html", "has %d bytes; at most %d are allowed", n, maxRefusalPage)
	}
	for _, value := range []string{"{title}", "{status}", "{request_id}"} {
		if n := strings.Count(c.HTML, value); n > maxOfValue {
			v.add(at+".html", "has %s %d times; at most %d are allowed", value, n, maxOfValue)
		}
	}
	return &c
}

func (c *RefusalsConfig) uses() []Key { return nil }
