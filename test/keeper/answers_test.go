package keeper_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// A host's answer to a request without a session.
const (
	gone   = 404
	serves = 200
	asks   = 302 // for a login; without one, if only the token is checked
	missed = 401
	// unavailable is the answer while it has no secrets.
	unavailable = 503
)

// answers are the right answers of each host, at any time.
type answers struct {
	mu    sync.Mutex
	hosts map[string][]period
}

// period is the right answer from a moment on.
type period struct {
	from  time.Time
	right []int
}

// change sets a new answer of a host; until the Envoy has it, both are right.
func (a *answers) change(host string, to int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := []int{gone}
	if list := a.hosts[host]; len(list) > 0 {
		before = list[len(list)-1].right
	}
	a.hosts[host] = append(a.hosts[host], period{time.Now(), append(slices.Clone(before), to)})
}

// settle says that the Envoy has the newest answer of a host.
func (a *answers) settle(host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.hosts[host]
	last := list[len(list)-1].right
	a.hosts[host] = append(list, period{time.Now(), last[len(last)-1:]})
}

func (a *answers) judge(e testkit.Exchange) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	status := e.Status
	if e.Path == tokenPath && status == missed {
		status = asks
	}
	right := []int{}
	for i, p := range a.hosts[e.Host] {
		over := i+1 < len(a.hosts[e.Host]) && a.hosts[e.Host][i+1].from.Before(e.Sent)
		if !over && p.from.Before(e.Done) {
			right = append(right, p.right...)
		}
	}
	if len(right) == 0 && status == gone || slices.Contains(right, status) {
		return nil
	}
	return fmt.Errorf("%s%s answered %d %q, right are %v", e.Host, e.Path, e.Status, e.Body, right)
}

// load sends requests to hosts, some of them to paths where only the token is checked.
func (a *answers) load(g *gateway, hosts []string) *testkit.Traffic {
	return testkit.StartTraffic(testkit.TrafficOptions{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(g.port)), Rate: 500, Judge: a.judge,
		Next: func() testkit.Target {
			path := "/"
			if rand.IntN(4) == 0 { //nolint:gosec // which one does not matter
				path = tokenPath
			}
			return testkit.Target{Host: hosts[rand.IntN(len(hosts))], Path: path} //nolint:gosec // as above
		},
	})
}
