package status

// Lag says why an Envoy, or a proxy without one, does not have a revision.
type Lag struct {
	// Proxy is empty if nothing is known of a whole replica.
	Proxy string `json:"proxy,omitempty"`
	// Envoy is the address that it connected from; empty if none is connected.
	Envoy string `json:"envoy,omitempty"`
	// Replica is where it is connected; empty means here.
	Replica string `json:"replica,omitempty"`
	// Reason is one of the codes below.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// The reasons of a Lag.
const (
	// NotConnected: no Envoy of the proxy is connected.
	NotConnected = "not_connected"
	// Refused: the Envoy refused a part of it; the message is Envoy's.
	Refused = "refused"
	// Waiting: the Envoy prepares something that it needs first, such as the
	// first round of a health check.
	Waiting = "waiting"
	// Slow: the Envoy has not answered yet.
	Slow = "slow"
	// Unheard: another replica is not heard, so what its Envoys have is unknown.
	Unheard = "unheard"
)
