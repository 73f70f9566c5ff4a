package model

import (
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// DirectResponseFilter answers by itself, instead of an upstream. A service or a
// route has at most one filter that answers.
// +page=answers.md
// +example={status: 503, body: "<h1>Back at ten</h1>", content_type: text/html, headers: {retry-after: "3600"}}
type DirectResponseFilter struct {
	// The status of the answer, not a redirect. Default: 200.
	// +minimum=200
	// +maximum=599
	Status int `json:"status"`
	// The body, in bytes as they are; empty for 204 and 205.
	// +maxLength=MaxDirectResponse
	Body string `json:"body"`
	// The media type of the body (RFC 9110 section 8.3); default: text/plain.
	ContentType string `json:"content_type"`
	// Other headers that are set, by name.
	// +additionalProperties={type: string, minLength: 1, maxLength: maxHeaderText}
	Headers map[string]string `json:"headers"`
}

// MaxDirectResponse bounds the body of an answer, in bytes. Every Envoy holds it, for each of its
// routes.
const MaxDirectResponse = 65536

func readDirectResponse(v *validator, at, _ string, config JSON) Spec {
	var f DirectResponseFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Status == 0 {
		f.Status = http.StatusOK
	}
	switch s := f.Status; {
	case s >= 300 && s < 400:
		v.add(at+".status", "%d redirects; use a filter of type %s", s, FilterRedirect)
	case s < 200 || s > 599:
		v.add(at+".status", "must be between 200 and 599")
	}
	switch empty := f.Status == http.StatusNoContent || f.Status == http.StatusResetContent; {
	case empty && f.Body != "":
		v.add(at+".body", "must be empty: an answer with status %d has none", f.Status)
	case len(f.Body) > MaxDirectResponse:
		v.add(at+".body", "has %d bytes; at most %d are allowed, because every Envoy holds it: "+
			"serve a larger body from an upstream", len(f.Body), MaxDirectResponse)
	}
	v.mediaType(at+".content_type", f.ContentType)
	seen := map[string]bool{"content-type": true, "server": true}
	for _, name := range slices.Sorted(maps.Keys(f.Headers)) {
		field := at + ".headers." + name
		switch strings.ToLower(name) {
		case "content-type":
			v.add(field, "is set by content_type")
		case "server":
			v.add(field, "%q is set by the gateway and cannot be changed", name)
		default:
			v.headerName(field, name, seen)
			v.headerText(field, f.Headers[name])
		}
	}
	if n := len(f.Headers); n > maxHeaders {
		v.add(at+".headers", "sets %d headers; at most %d are allowed", n, maxHeaders)
	}
	return &f
}

func (f *DirectResponseFilter) uses() []Key { return nil }

// mediaType checks one that is given.
func (v *validator) mediaType(field, s string) {
	if s == "" {
		return
	}
	if _, _, err := mime.ParseMediaType(s); err != nil || !strings.Contains(s, "/") || !IsHeaderText(s) {
		v.add(field, "%q is not a media type such as text/html; charset=utf-8", s)
	}
}
