package logins

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// Window is how long after the last one failures are reported.
	Window = time.Hour
	// apart is the time between two reports of one reason of one service.
	apart = time.Minute
	// maxTallies bounds the pairs of service and reason that are kept, maxReports the reports
	// within apart, for all of them together.
	maxTallies, maxReports = 2000, 30
)

// Counts are the logins that failed. It is safe for concurrent use; the zero value is ready.
type Counts struct {
	mu      sync.Mutex
	tallies map[failureKey]*tally
	totals  map[string]int
	// reports is the number of reports since began.
	reports int
	began   time.Time
}

type failureKey struct {
	service string
	login   model.Key
	code    string
}

// tally is what has happened for one service and reason.
type tally struct {
	count       int
	first, last time.Time
	requestID   string
	message     string
	// told is when it was last reported, and count the number then.
	told      time.Time
	toldCount int
}

// Add counts a failure. fresh says that it should be reported: it is the first of its kind,
// or the first after a minute. more is the number since the last report.
func (c *Counts) Add(f Failure, now time.Time) (fresh bool, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tallies == nil {
		c.tallies, c.totals = map[failureKey]*tally{}, map[string]int{}
	}
	c.totals[f.Reason.Code]++
	at := failureKey{f.Service, f.Login, f.Reason.Code}
	t := c.tallies[at]
	if t != nil && now.Sub(t.last) > Window {
		t = nil
	}
	if t == nil {
		c.forget(now)
		if len(c.tallies) >= maxTallies {
			return false, 0
		}
		t = &tally{first: now}
		c.tallies[at] = t
	}
	t.count++
	t.last, t.requestID, t.message = now, f.RequestID, f.Reason.Message
	if !t.told.IsZero() && now.Sub(t.told) < apart || !c.mayReport(now) {
		return false, 0
	}
	more, t.told, t.toldCount = t.count-t.toldCount-1, now, t.count
	return true, more
}

// mayReport bounds the reports of all services together. It requires mu.
func (c *Counts) mayReport(now time.Time) bool {
	if now.Sub(c.began) >= apart {
		c.began, c.reports = now, 0
	}
	c.reports++
	return c.reports <= maxReports
}

// forget drops what is old. It requires mu.
func (c *Counts) forget(now time.Time) {
	if len(c.tallies) < maxTallies {
		return
	}
	maps.DeleteFunc(c.tallies, func(_ failureKey, t *tally) bool { return now.Sub(t.last) > Window })
}

// Totals returns the number of failures since the start, by the code of their reason.
func (c *Counts) Totals() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.totals)
}

// Conditions returns conditions of services, and of the objects that configure their logins,
// with the reasons why logins failed within the Window before now.
func (c *Counts) Conditions(now time.Time) []model.Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []model.Condition
	for at, t := range c.tallies {
		if now.Sub(t.last) > Window {
			continue
		}
		what := fmt.Sprintf("%s; %d since %s, the last at %s", t.message, t.count, clock(t.first), clock(t.last))
		if t.requestID != "" {
			what += " (request " + t.requestID + ")"
		}
		list = append(list, model.Condition{Key: model.ServiceKey(at.service), Code: model.LoginFailing, Message: what})
		if at.login.Kind != "" {
			list = append(list, model.Condition{
				Key: at.login, Code: model.LoginFailing, Message: fmt.Sprintf("on service %s: %s", at.service, what),
			})
		}
	}
	slices.SortFunc(list, func(a, b model.Condition) int {
		return cmp.Or(cmp.Compare(a.Key.Text(), b.Key.Text()), cmp.Compare(a.Message, b.Message))
	})
	return list
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
