package plan

import "time"

const (
	// restAfter is how many route configurations in a row are sent as soon as
	// the previous one is answered. A few consecutive calls are not delayed.
	restAfter = 2
	// maxRest bounds a rest.
	maxRest = time.Second
)

// pace collects changes while they keep coming. Envoy reads a route
// configuration as a whole, so one after the other would keep its main thread
// busy. After restAfter of them in a row, each waits for as long as Envoy took
// for the previous one. A change never waits if nothing is unanswered.
type pace struct {
	sentAt time.Time // of the last configuration
	// answered means that it was acknowledged and nothing has been decided
	// since.
	answered  bool
	row       int // number of configurations that were due when the previous one was answered
	restUntil time.Time
}

// mustRest reports whether the configuration that is due now must wait until
// restUntil.
func (p *pace) mustRest(now time.Time) bool {
	if !p.answered {
		return false
	}
	p.answered = false
	p.row++
	if p.row < restAfter {
		return false
	}
	p.restUntil = now.Add(min(now.Sub(p.sentAt), maxRest))
	return now.Before(p.restUntil)
}

// noteIdle records that nothing is due.
func (p *pace) noteIdle() { p.answered, p.row = false, 0 }
