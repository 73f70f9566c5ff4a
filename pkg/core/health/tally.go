package health

import "time"

// Counts are requests, or attempts to make one, to one endpoint.
type Counts struct {
	// Succeeded got an answer other than 5xx.
	Succeeded uint64
	// Failed were sent and received a 5xx answer, or none.
	Failed uint64
	// Unconnected were not sent, because no connection was made.
	Unconnected uint64
	// Untold were sent, and Envoy does not say how they ended: clients did not wait for the answer, or the proxy is
	// lean and they failed.
	Untold uint64
	// Causes are the causes of the failures; all are zero if they are not known.
	Causes Causes
}

// Causes counts failures by their cause, as Envoy does.
type Causes struct {
	// These count connections that were not made. Refused is the rest after the others
	// are subtracted.
	Refused, ConnectTimeout, TLS, Certificate uint64
	// These count requests that were sent. ServerError is a 5xx answer.
	Protocol, Closed, Timeout, ServerError uint64
}

// Tally adds up recent counts.
type Tally struct {
	Counts
	// Since is when the counting began, Last when something was last counted.
	Since, Last time.Time
}

// Bad is the number of failures.
func (c Counts) Bad() uint64 { return c.Failed + c.Unconnected }

// Add adds what happened before now. Counts older than the window are dropped, and so
// are failures once there are only successes.
func (t *Tally) Add(now time.Time, window time.Duration, c Counts) {
	if c.Succeeded+c.Bad()+c.Untold == 0 {
		return
	}
	if now.Sub(t.Since) > window || c.Bad() == 0 && t.Bad() > 0 {
		*t = Tally{Since: now}
	}
	t.Last = now
	t.Succeeded += c.Succeeded
	t.Failed += c.Failed
	t.Unconnected += c.Unconnected
	t.Untold += c.Untold
	t.Causes = t.Causes.add(c.Causes)
}

// Fresh reports whether something was counted within the window.
func (t Tally) Fresh(now time.Time, window time.Duration) bool {
	return !t.Last.IsZero() && now.Sub(t.Last) <= window
}

func (c Causes) add(d Causes) Causes {
	return Causes{
		Refused: c.Refused + d.Refused, ConnectTimeout: c.ConnectTimeout + d.ConnectTimeout,
		TLS: c.TLS + d.TLS, Certificate: c.Certificate + d.Certificate,
		Protocol: c.Protocol + d.Protocol, Closed: c.Closed + d.Closed,
		Timeout: c.Timeout + d.Timeout, ServerError: c.ServerError + d.ServerError,
	}
}

// Sum adds the counts of several Envoys.
func Sum(a, b Counts) Counts {
	return Counts{
		Succeeded: a.Succeeded + b.Succeeded, Failed: a.Failed + b.Failed,
		Unconnected: a.Unconnected + b.Unconnected, Untold: a.Untold + b.Untold, Causes: a.Causes.add(b.Causes),
	}
}
