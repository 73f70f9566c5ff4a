package plan

import "time"

const (
	// restAfter is how many route configurations in a row go out as soon as the
	// one before is answered. A few calls one after the other are not delayed.
	restAfter = 2
	// maxRest bounds a rest.
	maxRest = time.Second
)

// pace gathers changes while they keep coming. Envoy reads a route configuration
// as a whole, so that one after the other would keep its main thread busy. After
// restAfter of them in a row, each rests for as long as Envoy took for the one
// before. A change that comes when nothing is under way never rests.
type pace struct {
	sentAt time.Time // of the last configuration
	// answered says that it was acknowledged and nothing was decided since.
	answered  bool
	row       int // configurations that were due when the one before was answered
	restUntil time.Time
}

// mustRest reports whether the configuration that is due now waits until
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

// noteIdle notes that nothing is due.
func (p *pace) noteIdle() { p.answered, p.row = false, 0 }
