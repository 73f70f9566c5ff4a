package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// storm knows the right answers at every moment while the configuration changes. From
// the start of a change until it is known to be applied, the old answer and the new one
// are right; after that only the new.
type storm struct {
	api testkit.API
	// kills says that the control plane is killed now and then: calls are repeated
	// until they are answered, and Envoys may be disconnected.
	kills bool
	began time.Time
	// oldest is when the oldest running request was sent.
	oldest func() time.Time

	mu      sync.Mutex
	rng     *rand.Rand // of the traffic
	hosts   []*stormHost
	names   map[string]*history // by host name
	sure    int                 // requests that a backend had to answer
	open    int                 // those that might also hit a host that does not exist
	changes []stormChange
}

// stormHost is a service as it was last written.
type stormHost struct {
	service, fqdn string
	old           string // its previous host name, which no service answers
	attached      bool
	routes        map[string]*stormRoute
}

// stormRoute has a path for which every kind of match means the same.
type stormRoute struct {
	path, match string
	// off says that the route matches another method than that of the traffic.
	off       bool
	config    map[string]any
	upstreams map[string]*stormUpstream
}

type stormUpstream struct {
	name, strategy string
	backend        *testkit.Backend
	protocol       string // of the backend
	weight         int
	check, dns     bool
}

// history lists what was right for a host name, the newest last.
type history []expectation

type expectation struct {
	from, until time.Time // until is zero while it may still be right
	answers     map[string][]string
}

// stormChange is one call of the API.
type stormChange struct {
	from, to   time.Time
	kind, call string
	result     string
}

// answers returns the backends that may answer, by path; other paths are as "/". An
// empty list means that none answers.
func (h *stormHost) answers() map[string][]string {
	if !h.attached {
		return nil
	}
	all := map[string][]string{}
	for _, r := range h.routes {
		if r.off {
			continue
		}
		for _, u := range r.upstreams {
			if u.weight > 0 {
				all[r.path] = append(all[r.path], u.backend.Name)
			}
		}
	}
	return all
}

func (e expectation) of(path string) []string {
	if list, ok := e.answers[path]; ok {
		return list
	}
	return e.answers["/"]
}

// expect adds answers that are right from now on.
func (s *storm) expect(name string, answers map[string][]string, now time.Time) {
	if s.names[name] == nil {
		s.names[name] = &history{{}} // so far there was none
	}
	*s.names[name] = append(*s.names[name], expectation{from: now, answers: answers})
}

// settle records that only the newest version of a host is served.
func (s *storm) settle(name string, now time.Time) {
	list := *s.names[name]
	for i := range list[:max(len(list)-1, 0)] {
		if list[i].until.IsZero() {
			list[i].until = now
		}
	}
}

// next returns the target of the next request.
func (s *storm) next() testkit.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[s.rng.IntN(len(s.hosts))]
	paths := slices.Sorted(maps.Keys(h.routes))
	t := testkit.Target{Host: h.fqdn, Path: h.routes[paths[s.rng.IntN(len(paths))]].path}
	switch s.rng.IntN(20) {
	case 0:
		t.Host = h.old
	case 1:
		t.Path = fmt.Sprintf("/r%d-", s.rng.IntN(1000))
	}
	return t
}

// judge checks that an answer was right at some moment of the exchange.
func (s *storm) judge(e testkit.Exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	right, sure := false, true
	var allowed []string
	for _, x := range *s.names[e.Host] {
		if x.from.After(e.Done) || !x.until.IsZero() && x.until.Before(e.Sent) {
			continue
		}
		backends := x.of(e.Path)
		if len(backends) == 0 {
			sure = false
			right = right || e.Status == http.StatusNotFound
		} else {
			right = right || e.Status == http.StatusOK && slices.Contains(backends, e.Backend)
		}
		allowed = append(allowed, fmt.Sprint(backends))
	}
	if sure {
		s.sure++
	} else {
		s.open++
	}
	if right {
		return nil
	}
	return fmt.Errorf("GET %s%s at %s, answered after %s: status %d from %q, right were %s: %s%s",
		e.Host, e.Path, s.since(e.Sent), e.Done.Sub(e.Sent), e.Status, e.Backend, strings.Join(allowed, " "),
		strings.TrimSpace(string(e.Body)), s.around(e))
}

func (s *storm) since(t time.Time) time.Duration { return t.Sub(s.began).Round(100 * time.Microsecond) }

// around lists the changes around an exchange.
func (s *storm) around(e testkit.Exchange) string {
	const before, after = 1500 * time.Millisecond, 100 * time.Millisecond
	var b strings.Builder
	for _, c := range s.changes {
		if c.to.IsZero() || c.to.After(e.Sent.Add(-before)) && c.from.Before(e.Done.Add(after)) {
			to := "now"
			if !c.to.IsZero() {
				to = s.since(c.to).String()
			}
			fmt.Fprintf(&b, "\n    %s to %s: %s: %s %s", s.since(c.from), to, c.kind, c.call, c.result)
		}
	}
	return b.String()
}

// counted lists changes by kind.
func counted(kinds map[string]int) string {
	total := 0
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		total += kinds[k]
		parts = append(parts, fmt.Sprintf("%d %s", kinds[k], k))
	}
	return fmt.Sprintf("%d changes: %s", total, strings.Join(parts, ", "))
}
