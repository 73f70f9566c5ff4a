package model

import "fmt"

// AccessLogFilter sets in which logs the requests of a service or route are written, of those that the proxy has. A
// route's filter replaces its service's. Without one, requests are written to each log that is not attached_only.
// +page=accesslog.md
// +example={logs: [shop]}
type AccessLogFilter struct {
	// Names of globalconfig_accesslog. Empty means none. A name without a log on a proxy has no effect there. Logs that
	// are always written have all requests.
	// +required
	// +maxItems=MaxLogs
	// +items={type: string}
	Logs []string `json:"logs"`
}

// MaxLogs is how many logs a filter may name; a proxy has no more.
const MaxLogs = 8

func readAccessLogFilter(v *validator, at, _ string, config JSON) Spec {
	var f AccessLogFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	switch {
	case f.Logs == nil:
		v.add(at+".logs", "is required; [] means no log")
	case len(f.Logs) > MaxLogs:
		v.add(at+".logs", "has %d names; at most %d are allowed", len(f.Logs), MaxLogs)
	default:
		for i, log := range f.Logs {
			v.name(fmt.Sprintf("%s.logs[%d]", at, i), log, true)
		}
	}
	return &f
}

// uses has no logs: a filter may name one that does not exist, and a log that is named applies to every proxy as before.
func (f *AccessLogFilter) uses() []Key { return nil }
