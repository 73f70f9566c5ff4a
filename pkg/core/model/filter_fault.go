package model

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// FaultFilter delays or fails some requests on purpose, to test how clients react. A route's filter replaces its
// service's.
// +page=fault.md
// +example={delay: 2s, abort: 503, percent: 0.5}
type FaultFilter struct {
	// How long a request waits, 1ms to 1m. A number means milliseconds. Specify at least one of delay and abort.
	// +anyOf=[{type: string}, {type: integer, minimum: 1, maximum: maxFaultDelay}]
	// +example=2s
	Delay FaultDelay `json:"delay"`
	// The status of the answer that replaces the upstream's.
	// +minimum=400
	// +maximum=599
	Abort int `json:"abort"`
	// The share of requests, in percent with at most four decimals; absent means 100. It is drawn
	// separately for the delay and for the abort.
	// +minimum=0.0001
	// +maximum=100
	Percent *float64 `json:"percent"`
	// Only requests with this header, whatever its value; absent means all.
	// +maxLength=maxHeaderName
	Header string `json:"header"`
}

// maxFaultDelay is in milliseconds: a request that waits keeps a place in Envoy.
const maxFaultDelay = 60000

// FaultDelay is a duration. Older configurations have it as a number of milliseconds.
type FaultDelay time.Duration

// UnmarshalJSON reads either form.
func (d *FaultDelay) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*Duration)(d))
	}
	var ms int32
	if err := json.Unmarshal(b, &ms); err != nil {
		return fmt.Errorf("delay %s is not a duration such as \"1.5s\", and not a whole number of milliseconds", b)
	}
	*d = FaultDelay(time.Duration(ms) * time.Millisecond)
	return nil
}

func readFault(v *validator, at, _ string, config JSON) Spec {
	var f FaultFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Delay == 0 && f.Abort == 0 {
		v.add(at, `does nothing; set delay or abort, such as {"abort":503,"percent":10}`)
	}
	if d := time.Duration(f.Delay); d != 0 && (d < time.Millisecond || d > maxFaultDelay*time.Millisecond) {
		v.add(at+".delay", "%s is not between 1ms and 1m", d)
	}
	if f.Abort != 0 {
		v.checkRange(at+".abort", f.Abort, 400, 599)
	}
	if f.Percent != nil {
		millionths := *f.Percent * 10_000
		switch {
		case millionths < 1 || *f.Percent > 100:
			v.add(at+".percent", "%v is not between 0.0001 and 100", *f.Percent)
		case math.Abs(millionths-math.Round(millionths)) > 1e-6:
			v.add(at+".percent", "%v has more than four decimals", *f.Percent)
		}
	}
	if f.Header != "" {
		v.headerName(at+".header", f.Header, map[string]bool{})
	}
	return &f
}

func (f *FaultFilter) uses() []Key { return nil }

// Millionths is the share of requests, of a million.
func (f *FaultFilter) Millionths() int {
	if f.Percent == nil {
		return 1_000_000
	}
	return int(math.Round(*f.Percent * 10_000))
}

// Advice says that clients meet faults.
func (f *FaultFilter) Advice() []string {
	share := "all requests"
	if f.Millionths() < 1_000_000 {
		share = fmt.Sprintf("%v%% of the requests", *f.Percent)
	}
	if f.Header != "" {
		share += " with the header " + f.Header
	}
	return []string{"is for tests: " + share + " are delayed or fail where it is attached"}
}
