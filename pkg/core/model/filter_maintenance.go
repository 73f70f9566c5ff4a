package model

import "slices"

// MaintenanceFilter closes a service: its answer replaces the answers of all routes, and comes before logins. Paths
// below /.well-known/ stay open, so that certificates can be renewed.
// +page=maintenance.md
// +example={status: 503, body: "<h1>Back at ten</h1>", content_type: text/html, retry_after: 3600, except: [192.0.2.0/24]}
type MaintenanceFilter struct {
	// Whether it closes the service. Default: true.
	On *bool `json:"on"`
	// The status of the answer; absent means 503.
	// +enum=[200, 404, 410, 503]
	Status int `json:"status"`
	// The body of the answer; absent means a short text.
	// +maxLength=MaxDirectResponse
	Body string `json:"body"`
	// The media type of the body (RFC 9110 section 8.3); absent means text/plain.
	ContentType string `json:"content_type"`
	// The seconds that clients should wait, in Retry-After; absent means no such header.
	// +minimum=1
	// +maximum=maxRetryAfter
	RetryAfter int `json:"retry_after"`
	// Addresses and ranges whose requests are still served.
	// +maxItems=maxExcept
	Except []string `json:"except"`
	// Names of lists of addresses that still reach the service, beside except.
	// +maxItems=maxLists
	// +items={type: string, minLength: 1}
	ExceptLists []string `json:"except_lists"`
}

const (
	// maxRetryAfter is 30 days.
	maxRetryAfter = 2592000
	// maxExcept bounds what is compared one by one.
	maxExcept = 100
)

// MaintenanceStatuses are those that an Envoy has an answer for.
func MaintenanceStatuses() []int { return []int{200, 404, 410, 503} }

func readMaintenance(v *validator, at, _ string, config JSON) Spec {
	var f MaintenanceFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Status == 0 {
		f.Status = 503
	}
	if !slices.Contains(MaintenanceStatuses(), f.Status) {
		v.add(at+".status", "%d is not one of 200, 404, 410, 503", f.Status)
	}
	if len(f.Body) > MaxDirectResponse {
		v.add(at+".body", "has %d bytes; at most %d are allowed, because every Envoy holds it", len(f.Body),
			MaxDirectResponse)
	}
	v.mediaType(at+".content_type", f.ContentType)
	if f.RetryAfter != 0 {
		v.checkRange(at+".retry_after", f.RetryAfter, 1, maxRetryAfter)
	}
	if len(f.Except) > maxExcept {
		v.add(at+".except", "has %d entries; at most %d are allowed, because each request is compared with all",
			len(f.Except), maxExcept)
	} else {
		v.ranges(at+".except", f.Except, maxRanges)
	}
	v.lists(at+".except_lists", f.ExceptLists)
	return &f
}

func (f *MaintenanceFilter) uses() []Key { return listKeys(f.ExceptLists) }

// IsOn reports whether it closes its service.
func (f *MaintenanceFilter) IsOn() bool { return f.On == nil || *f.On }

// Advice says which ranges are written in a way that suggests another one.
func (f *MaintenanceFilter) Advice() []string { return adviseRanges("except", f.Except) }
