package health

import (
	"fmt"
	"strings"
)

// State is the health of an upstream in one word.
type State string

// The states of an upstream.
const (
	// Healthy passes its health check.
	Healthy State = "healthy"
	// Answering has no known health check; its last requests succeeded.
	Answering State = "answering"
	// NotChecked has no health check, and received no request recently.
	NotChecked State = "not_checked"
	// NotKnown is checked by Envoys that do not report the result.
	NotKnown State = "not_known"
	// Checking waits for the result of its first health check.
	Checking State = "checking"
	// Unhealthy fails its health check.
	Unhealthy State = "unhealthy"
	// Ejected failed too often in a row and temporarily receives no requests.
	Ejected State = "ejected"
	// Failing failed at least half of its last requests.
	Failing State = "failing"
	// Unresolved has a name that does not resolve.
	Unresolved State = "unresolved"
)

// Bad reports whether requests for the upstream fail.
func (s State) Bad() bool {
	return s == Unhealthy || s == Ejected || s == Failing || s == Unresolved
}

// Excluded reports whether an Envoy sends no requests to the upstream.
func (s State) Excluded() bool { return s == Unhealthy || s == Ejected || s == Unresolved }

// The reasons of a bad state.
const (
	Refused        = "connection_refused"
	ConnectTimeout = "connect_timeout"
	TLSError       = "tls_error"
	Certificate    = "certificate"
	NotConnected   = "not_connected" // the cause is not known
	ProtocolError  = "protocol_error"
	Closed         = "connection_closed"
	Timeout        = "timeout"
	ServerError    = "server_error"
	NoAnswer       = "no_answer" // the cause is not known
	CheckAnswer    = "health_check_answer"
	NameError      = "name_does_not_resolve"
)

// Condition is what is reported about an upstream.
type Condition struct {
	State State
	// Reason is one of the reasons above, for a bad state.
	Reason string
	// Message describes the condition.
	Message string
}

// Facts are what is known of an upstream.
type Facts struct {
	// Protocol is http, h2c, tls or h2.
	Protocol string
	// Checked says that a health check is configured.
	Checked bool
	// Reported says that the Envoys report their requests; Counts has the recent ones.
	Reported bool
	Counts   Counts
	// Own is what the Envoy of this program reports about the endpoint; nil means that
	// it was not asked.
	Own *Own
	// Finding is the result of a handshake; see NeedsHandshake.
	Finding Finding
}

// Own is what an Envoy itself reports about an endpoint.
type Own struct {
	// Resolved says that there is an address.
	Resolved bool
	// Addresses counts the addresses of a name, Ill those of them that receive no
	// requests.
	Addresses, Ill int
	// Pending, Failed and Ejected are Envoy's health flags.
	Pending, Failed, Ejected bool
	// CheckTimeout says that the last health check was not answered in time.
	CheckTimeout bool
	// CheckFailures counts the failed health checks of the cluster, CheckBroken those
	// of them without an answer.
	CheckFailures, CheckBroken uint64
	// CheckTLS counts the failed handshakes in the same time.
	CheckTLS uint64
}

// Of returns the condition for some facts.
func Of(f Facts) Condition {
	if own := f.Own; own != nil {
		switch {
		case !own.Resolved:
			return Condition{Unresolved, NameError, "the name does not resolve to an address"}
		case own.Failed:
			return f.unhealthyCondition()
		}
	}
	total := f.Counts.Succeeded + f.Counts.Bad()
	bad := 2*f.Counts.Bad() >= total && total > 0
	switch {
	case f.Own != nil && f.Own.Ejected:
		c := f.failingCondition(total)
		if !bad {
			c = Condition{Message: "it failed several times in a row"}
		}
		return Condition{Ejected, c.Reason, c.Message + "; it gets no requests for a moment"}
	case bad:
		return f.failingCondition(total)
	case f.Own != nil && f.Own.Pending:
		return Condition{Checking, "", "its first health check is under way"}
	case f.Own != nil && f.Own.Ill > 0:
		state := Answering
		if f.Checked {
			state = Healthy
		}
		return Condition{
			state, "",
			fmt.Sprintf("%d of its %d addresses are healthy", f.Own.Addresses-f.Own.Ill, f.Own.Addresses) + f.aside(total),
		}
	case f.Own != nil && f.Checked:
		return Condition{Healthy, "", "it passes its health check" + f.aside(total)}
	case total > 0:
		return Condition{
			Answering, "",
			fmt.Sprintf("%d of its last %s succeeded", f.Counts.Succeeded, requests(total+f.Counts.Untold)),
		}
	case f.Counts.Untold > 0:
		return Condition{NotKnown, "", "of its last " + requests(f.Counts.Untold) + ", none is known to have succeeded"}
	case f.Checked:
		return Condition{
			NotKnown, "", "its health check is made by Envoys that do not report the result, and no request got there lately",
		}
	case !f.Reported:
		return Condition{NotChecked, "", "not checked: it has no health check, and no Envoy has reported on its requests"}
	}
	return Condition{NotChecked, "", "not checked: it has no health check, and no request got there lately"}
}

func (f Facts) aside(total uint64) string {
	if f.Counts.Bad() == 0 {
		return ""
	}
	return fmt.Sprintf(", but %d of its last %s failed", f.Counts.Bad(), requests(total))
}

func requests(n uint64) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

func (f Facts) unhealthyCondition() Condition {
	c, o := Condition{State: Unhealthy, Reason: CheckAnswer}, f.Own
	switch {
	case o.CheckTLS > 0:
		c.Reason, c.Message = TLSError, "its health check meets a TLS error: the port may not speak TLS, "+
			"or its certificate is not trusted"
	case o.CheckTimeout:
		c.Reason, c.Message = Timeout, "its health check is not answered in time"
	case o.CheckFailures > 0 && o.CheckBroken == o.CheckFailures:
		c.Reason, c.Message = NotConnected, "its health check does not connect, or is cut off"
	case o.CheckFailures > 0 && o.CheckBroken == 0:
		c.Message = "its health check is answered with a status other than 200"
	default:
		c.Reason, c.Message = "", "it fails its health check"
	}
	if f.Finding.explains(c.Reason) {
		c.Reason, c.Message = f.Finding.Reason, "its health check fails: "+f.Finding.Message
	}
	return c
}

// failingCondition returns the most frequent failure, with its cause if that is known.
func (f Facts) failingCondition(total uint64) Condition {
	c := f.Counts
	reason, why := f.requestReason()
	what := "requests"
	if c.Unconnected >= c.Failed {
		reason, why = f.connectReason()
	}
	if f.Finding.explains(reason) {
		reason, why = f.Finding.Reason, f.Finding.Message
	}
	if c.Failed == 0 {
		what = "attempts to connect"
	}
	return Condition{Failing, reason, fmt.Sprintf("%s; %d of its last %d %s failed", why, c.Bad(), total, what)}
}

// connectReason returns why no connection is made.
func (f Facts) connectReason() (reason, why string) {
	tls := "TLS error: the handshake fails, perhaps because the port does not speak TLS"
	return mostFrequent(NotConnected, "no connection, for a reason that load reports do not show", []cause{
		{f.Counts.Causes.Refused, Refused, "connection refused, or the host is not reachable"},
		{f.Counts.Causes.ConnectTimeout, ConnectTimeout, "connect timeout: nothing answers at this address"},
		{f.Counts.Causes.TLS, TLSError, tls},
		{f.Counts.Causes.Certificate, Certificate, "TLS error: its certificate is not trusted, or has another name"},
	})
}

// requestReason returns why requests fail after they were sent.
func (f Facts) requestReason() (reason, why string) {
	speaks, perhaps := "HTTP/1.1", "; the port may speak TLS or HTTP/2"
	switch f.Protocol {
	case "tls":
		perhaps = "; the port may speak HTTP/2"
	case "h2c", "h2":
		speaks, perhaps = "HTTP/2", "; the port may speak HTTP/1.1"
	}
	return mostFrequent(NoAnswer, "requests get a 5xx answer or none, load reports do not show which", []cause{
		{f.Counts.Causes.Protocol, ProtocolError, "protocol error: what answers is not " + speaks + perhaps},
		{f.Counts.Causes.Closed, Closed, "the connection is closed without an answer in " + speaks + perhaps},
		{f.Counts.Causes.Timeout, Timeout, "timeout: requests are not answered in time"},
		{f.Counts.Causes.ServerError, ServerError, "it answers 5xx"},
	})
}

type cause struct {
	count        uint64
	reason, text string
}

// mostFrequent returns the most frequent cause, and a text that names the others too.
func mostFrequent(reason, unknown string, list []cause) (string, string) {
	var first cause
	for _, c := range list {
		if c.count > first.count {
			first = c
		}
	}
	if first.count == 0 {
		return reason, unknown
	}
	texts := []string{first.text}
	for _, c := range list {
		if c.count > 0 && c != first {
			texts = append(texts, c.text)
		}
	}
	return first.reason, strings.Join(texts, "; or ")
}
