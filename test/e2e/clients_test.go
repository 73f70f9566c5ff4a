package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// clients is how many clients write and read at the same time.
const clients = 50

// clientsFor is how long they run: GATEHOUSE_TEST_CLIENTS, a duration, or one that
// suits a run with other tests.
func clientsFor() time.Duration {
	d, err := time.ParseDuration(os.Getenv("GATEHOUSE_TEST_CLIENTS"))
	if err != nil {
		return 3 * time.Second
	}
	return d
}

var _ = DescribeTable("50 clients at once", func(database func() string) {
	g := serve("--database-url", database())
	c := &crew{url: g.API.URL, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: 30 * time.Second}}
	DeferCleanup(c.client.CloseIdleConnections)
	c.prepare()
	end := time.Now().Add(clientsFor())
	var group sync.WaitGroup
	for n := range clients {
		group.Go(func() {
			one := &member{crew: c, n: n, dice: rand.New(rand.NewPCG(1, uint64(n)))}
			for time.Now().Before(end) {
				one.act()
			}
		})
	}
	group.Wait()

	AddReportEntry("calls", fmt.Sprintf("%d calls, %d revisions, %d refused as stale", c.calls, len(c.revisions), c.stale))
	Expect(c.wrong).To(BeEmpty())
	By("giving each change a revision of its own, without a gap")
	slices.Sort(c.revisions)
	for i, revision := range c.revisions {
		Expect(revision).To(Equal(int64(i + 1)))
	}
	By("losing no update")
	for n, counted := range c.counted {
		Expect(c.upstream(counterName(n)).Weight).To(Equal(counted), counterName(n))
	}
	Expect(c.stale).To(BeNumerically(">", 0), "nobody met another")
	expectNoPanic(g.Stderr.String())
},
	Entry("on SQLite", func() string { return "sqlite://" + GinkgoT().TempDir() + "/gatehouse.db" }),
	Entry("on PostgreSQL", func() string { return startPostgres().URL("gatehouse") }),
)

const counters = 4

func counterName(n int) string { return fmt.Sprintf("counter-%d", n) }

// crew is what the clients share.
type crew struct {
	url    string
	client *http.Client

	mu        sync.Mutex
	calls     int
	stale     int
	revisions []int64
	counted   [counters]int
	// wrong are the first wrong answers.
	wrong []string
}

func (c *crew) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 20 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// call makes a call whose answer must have one of the statuses. It records what the
// call changed.
func (c *crew) call(method, path, body, ifMatch string, statuses ...int) (status int, header http.Header, text string) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.fail("%v", err)
		return 0, nil, ""
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		c.fail("%v", err)
		return 0, nil, ""
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.fail("%s %s: %v", method, path, err)
	}
	_ = resp.Body.Close() // it was read
	if !slices.Contains(statuses, resp.StatusCode) {
		c.fail("%s %s %s: %d %s", method, path, body, resp.StatusCode, answer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if revision, err := strconv.ParseInt(resp.Header.Get("Gatehouse-Revision"), 10, 64); err == nil {
		c.revisions = append(c.revisions, revision)
	}
	return resp.StatusCode, resp.Header, string(answer)
}

func (c *crew) create(path, body string, statuses ...int) (status int) {
	status, _, _ = c.call(http.MethodPost, path, body, "", append(statuses, http.StatusCreated)...)
	return status
}

func (c *crew) delete(path string, statuses ...int) {
	c.call(http.MethodDelete, path, "", "", append(statuses, http.StatusOK)...)
}

func (c *crew) createUpstream(name string, statuses ...int) (status int) {
	return c.create("/upstream", "Upstream_name="+name+"&Upstream_ip=192.0.2.1&Upstream_port=80&Upstream_weight=0", statuses...)
}

// prepare creates what they share.
func (c *crew) prepare() {
	for n := range counters {
		c.createUpstream(counterName(n))
	}
	for n := range clients / 2 {
		c.createUpstream(fmt.Sprintf("pair-%d", n))
	}
	c.create("/service", "Service_Name=shop&fqdn=shop.test")
	c.create("/proxy", "Name=gw")
	c.create("/proxy/gw/service/shop", "")
}

// stored is an upstream as the API returns it.
type stored struct {
	Port   int `json:"upstream_port"`
	Weight int `json:"upstream_weight"`
	etag   string
}

func (c *crew) upstream(name string) stored {
	_, header, text := c.call(http.MethodGet, "/upstream/"+name, "", "", http.StatusOK)
	var answer struct {
		Data struct {
			List []stored `json:"core_db_upstream"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Data.List) != 1 {
		c.fail("GET /upstream/%s: %s", name, text)
		return stored{}
	}
	s := answer.Data.List[0]
	s.etag = header.Get("ETag")
	return s
}

// member is one client.
type member struct {
	*crew
	n    int
	dice *rand.Rand
	done int
}

func (m *member) act() {
	m.done++
	switch m.dice.IntN(6) {
	case 0:
		m.own()
	case 1, 2:
		m.count()
	case 3:
		m.half()
	case 4:
		m.compete()
	case 5:
		m.read()
	}
}

// own creates, changes and deletes objects that no other client uses.
func (m *member) own() {
	name := fmt.Sprintf("own-%d-%d", m.n, m.done)
	m.createUpstream(name)
	m.create("/service/shop/route", "Route_Name="+name+"&Route_prefix=%2F"+name)
	m.create("/service/shop/route/"+name+"/upstream/"+name, "")
	m.call(http.MethodPatch, "/upstream/"+name, "Upstream_port=81", "", http.StatusOK)
	m.delete("/upstream/"+name, http.StatusConflict)
	m.delete("/service/shop/route/" + name)
	m.delete("/upstream/" + name)
}

// count adds one to a number that all clients share, unless another was faster.
func (m *member) count() {
	n := m.dice.IntN(counters)
	path := "/upstream/" + counterName(n)
	was := m.upstream(counterName(n))
	status, _, _ := m.call(http.MethodPatch, path, fmt.Sprintf("Upstream_weight=%d", was.Weight+1), was.etag,
		http.StatusOK, http.StatusPreconditionFailed)
	m.mu.Lock()
	defer m.mu.Unlock()
	if status == http.StatusOK {
		m.counted[n]++
	} else {
		m.stale++
	}
}

// half changes one field while another client changes a different one of the same
// object.
func (m *member) half() {
	name := fmt.Sprintf("pair-%d", m.n/2)
	field := []string{"Upstream_weight", "Upstream_port"}[m.n%2]
	want := 1000 + m.done // another than before
	m.call(http.MethodPatch, "/upstream/"+name, fmt.Sprintf("%s=%d", field, want), "", http.StatusOK)
	is := m.upstream(name)
	if []int{is.Weight, is.Port}[m.n%2] != want {
		m.fail("%s: %s was set to %d, and is lost: %+v", name, field, want, is)
	}
}

// compete creates and deletes objects that others create and delete, too.
func (m *member) compete() {
	name := fmt.Sprintf("race-%d", m.dice.IntN(3))
	if m.createUpstream(name, http.StatusConflict) == http.StatusConflict {
		m.delete("/upstream/"+name, http.StatusNotFound)
	}
}

func (m *member) read() {
	path := []string{"/upstream?limit=1000", "/service/shop/route", "/config", "/revision", "/service/dump/shop"}[m.dice.IntN(5)]
	m.call(http.MethodGet, path, "", "", http.StatusOK)
}
