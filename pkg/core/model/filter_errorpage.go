package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ErrorPageFilter replaces the bodies of answers with an error, those of upstreams and those of the gateway. A route's
// filter replaces its service's.
// +page=errorpages.md
// +example={pages: [{statuses: ["500-599"], html: "<h1>Sorry ({status})</h1>", json: "{\"status\": {status}}"}]}
type ErrorPageFilter struct {
	// The pages. If several have a status, the first one does.
	// +required
	// +minItems=1
	// +maxItems=maxErrorPages
	Pages []ErrorPage `json:"pages"`
}

// ErrorPage is what clients get in place of answers with some statuses. It has at least one form. A client gets the
// form that its Accept asks for, if there is one, otherwise the first of text, html and json. {status} in a form is the
// status that the client gets.
type ErrorPage struct {
	// Statuses from 400 to 599, and ranges of them, such as 404 and 500-599.
	// +required
	// +minItems=1
	// +maxItems=maxStatusRanges
	Statuses []string `json:"statuses"`
	// A form for clients whose Accept contains text/html.
	// +maxLength=maxErrorPage
	HTML string `json:"html"`
	// A form for clients whose Accept contains application/json or application/problem+json. It is JSON once {status} is
	// a number.
	// +maxLength=maxErrorPage
	JSON string `json:"json"`
	// A form for all other clients.
	// +maxLength=maxErrorPage
	Text string `json:"text"`
	// Another status for the client, from 400 to 599; absent means the status of the answer.
	// +minimum=400
	// +maximum=599
	Status int `json:"status"`
}

const (
	// Every Envoy holds the pages, and receives them again with each change of routes.
	maxErrorPages, maxErrorPage, maxErrorPageTotal = 8, 65536, 131072
	// maxStatusRanges bounds what is parsed; there are 200 statuses.
	maxStatusRanges = 200
)

// StatusOfPage is the text in a form that becomes the status.
const StatusOfPage = "{status}"

func readErrorPage(v *validator, at, _ string, config JSON) Spec {
	var f ErrorPageFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if n := len(f.Pages); n < 1 || n > maxErrorPages {
		v.add(at+".pages", `has %d pages; give 1 to %d, such as [{"statuses":["500-599"],"html":"<h1>Sorry</h1>"}]`, n,
			maxErrorPages)
		return &f
	}
	total := 0
	for i, p := range f.Pages {
		total += v.errorPage(fmt.Sprintf("%s.pages[%d]", at, i), p)
	}
	if total > maxErrorPageTotal {
		v.add(at+".pages", "have %d bytes together; at most %d are allowed, because every Envoy holds them", total,
			maxErrorPageTotal)
	}
	return &f
}

// errorPage checks a page, and returns its size in bytes.
func (v *validator) errorPage(at string, p ErrorPage) int {
	if n := len(p.Statuses); n < 1 || n > maxStatusRanges {
		v.add(at+".statuses", `has %d entries; give 1 to %d, such as ["404","500-599"]`, n, maxStatusRanges)
	} else {
		for _, text := range p.Statuses {
			if _, _, ok := statusRange(text); !ok {
				v.add(at+".statuses", "%q is not a status from 400 to 599 or a range such as 500-599", text)
			}
		}
	}
	if p.Status != 0 {
		v.checkRange(at+".status", p.Status, http.StatusBadRequest, maxErrorStatus)
	}
	if p.HTML == "" && p.JSON == "" && p.Text == "" {
		v.add(at, "has no page; give html, json or text")
	}
	total := 0
	for _, form := range []struct{ name, text string }{{"html", p.HTML}, {"json", p.JSON}, {"text", p.Text}} {
		if n := len(form.text); n > maxErrorPage {
			v.add(at+"."+form.name, "has %d bytes; at most %d are allowed", n, maxErrorPage)
		}
		total += len(form.text)
	}
	if p.JSON != "" && !json.Valid([]byte(strings.ReplaceAll(p.JSON, StatusOfPage, "500"))) {
		v.add(at+".json", "is not JSON with a number in place of %s", StatusOfPage)
	}
	return total
}

// maxErrorStatus is the highest status of an answer.
const maxErrorStatus = 599

// statusRange reads a status, or a range of them.
func statusRange(text string) (low, high int, ok bool) {
	from, to, is := strings.Cut(text, "-")
	if !is {
		to = from
	}
	low, errLow := strconv.Atoi(from)
	high, errHigh := strconv.Atoi(to)
	return low, high, errLow == nil && errHigh == nil && len(from) == 3 && len(to) == 3 &&
		http.StatusBadRequest <= low && low <= high && high <= maxErrorStatus
}

// StatusesOf returns the statuses that a page of the filter replaces: those that no page before it has.
func (f *ErrorPageFilter) StatusesOf(page int) []int {
	var out []int
	for status := http.StatusBadRequest; status <= maxErrorStatus; status++ {
		if slices.IndexFunc(f.Pages, func(p ErrorPage) bool { return p.has(status) }) == page {
			out = append(out, status)
		}
	}
	return out
}

func (p ErrorPage) has(status int) bool {
	return slices.ContainsFunc(p.Statuses, func(text string) bool {
		low, high, ok := statusRange(text)
		return ok && low <= status && status <= high
	})
}

func (f *ErrorPageFilter) uses() []Key { return nil }

// Advice says which pages have a status that a page before them has.
func (f *ErrorPageFilter) Advice() []string {
	var out []string
	for i, p := range f.Pages {
		own := f.StatusesOf(i)
		for status := http.StatusBadRequest; status <= maxErrorStatus; status++ {
			if p.has(status) && !slices.Contains(own, status) {
				out = append(out, fmt.Sprintf("pages[%d] has status %d, and so has a page before it, which is used", i, status))
				break // one of them is enough
			}
		}
	}
	return out
}
