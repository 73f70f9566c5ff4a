package client

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Lag is an Envoy that does not have a change, or a proxy without any.
type Lag struct {
	Proxy   string `json:"proxy"`
	Envoy   string `json:"envoy"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Wait adds to the query of a write that the answer is to wait until every
// connected Envoy has it, at most for a time. The timeout of the client has to
// be longer.
func Wait(query url.Values, limit time.Duration) {
	query.Set("wait", "applied")
	query.Set("timeout", limit.String())
}

// Lagging lists what did not have the change when a wait ended; none when all
// had it.
func (a Answer) Lagging() []Lag {
	var data struct{ Lagging []Lag }
	if a.Status != http.StatusAccepted || json.Unmarshal(a.Data, &data) != nil {
		return nil
	}
	return data.Lagging
}
