package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// eventReader reads a stream of events.
type eventReader struct {
	io.Closer
	lines *bufio.Scanner
}

// openEvents opens a stream behind an event; empty means from now on.
func (a *api) openEvents(lastID string, header ...string) *eventReader {
	GinkgoHelper()
	// Nothing here is to hang for ever.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	DeferCleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/events", nil)
	Expect(err).NotTo(HaveOccurred())
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := a.client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(res.Body.Close)
	covered.add(a.judge(req, answer{status: res.StatusCode, header: res.Header}))
	Expect(res.StatusCode).To(Equal(200))
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &eventReader{res.Body, lines}
}

// block returns the lines up to an empty one; none where the stream ended.
func (r *eventReader) block() []string {
	var lines []string
	for r.lines.Scan() {
		if r.lines.Text() == "" {
			return lines
		}
		lines = append(lines, r.lines.Text())
	}
	return nil
}

// told is block without pings, which come when a machine is slow; nil at the end of the stream.
func (r *eventReader) told() []string {
	for {
		if lines := r.block(); len(lines) != 1 || lines[0] != ": ping" {
			return lines
		}
	}
}

// next returns the next event, "name data" without its time, and its id.
func (r *eventReader) next() (event, id string) {
	GinkgoHelper()
	lines := r.told()
	Expect(lines).NotTo(BeEmpty(), "the stream ended")
	Expect(lines).To(HaveLen(3))
	id, found := strings.CutPrefix(lines[0], "id: ")
	Expect(found).To(BeTrue(), lines[0])
	name, found := strings.CutPrefix(lines[1], "event: ")
	Expect(found).To(BeTrue(), lines[1])
	data, found := strings.CutPrefix(lines[2], "data: ")
	Expect(found).To(BeTrue(), lines[2])
	at := regexp.MustCompile(`,"at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"`)
	Expect(data).To(MatchRegexp(at.String()))
	return name + " " + at.ReplaceAllString(data, ""), id
}

// started returns the id that a stream begins with.
func (r *eventReader) started() string {
	GinkgoHelper()
	lines := r.block()
	Expect(lines).To(HaveLen(2))
	Expect(lines[0]).To(Equal("retry: 1000"))
	id, found := strings.CutPrefix(lines[1], "id: ")
	Expect(found).To(BeTrue())
	return id
}

// withEvents starts an API whose events a registry publishes.
func withEvents(change ...func(*rest.Options)) (*api, *status.Registry) {
	GinkgoHelper()
	registry := status.NewRegistry()
	return startAPI(append(change, func(o *rest.Options) { o.Live.Status = registry })...), registry
}

const lost = `reset {"event":"reset","message":"events were lost: read again what you keep, then go on with what follows"}`

var _ = Describe("GET /events", func() {
	It("reports events as they happen", func() {
		a, registry := withEvents()
		r := a.openEvents("")
		r.started()
		cluster := "type.googleapis.com/envoy.config.cluster.v3.Cluster"
		twelve := make([]status.Resource, 12)
		for i := range twelve {
			twelve[i].Name = string(rune('a' + i))
		}
		registry.RecordChange(status.Event{Revision: 7, Actor: "ann", Request: "POST /upstream", Changes: 1})
		registry.RecordPublish(7, 1, []string{"gw", "edge"}, 1500*time.Microsecond)
		registry.Connect(status.Envoy{ID: 3, Proxy: "gw", Address: "10.0.0.9:4000", Version: "1.39.3"})
		registry.RecordSent(3, cluster, status.Answer{Revision: 7})
		registry.RecordAck(3, cluster, status.Answer{Revision: 7, Resources: []status.Resource{{Name: "blue", Version: "v"}}})
		registry.RecordNack(3, cluster, status.Answer{Revision: 7, Resources: twelve, Text: "bad <port>\nin blue"})
		registry.SetProgress(3, status.Progress{Applied: 7})
		registry.SetProgress(3, status.Progress{Applied: 7, Waiting: []status.Wait{{Host: "shop"}}})
		registry.Disconnect(3)
		registry.Disconnect(3)
		registry.RecordChange(status.Event{Revision: 8, Actor: "ann", Request: "DELETE /upstream/blue", Changes: 1})
		for _, want := range []string{
			`change {"event":"change","revision":7,"actor":"ann","request":"POST /upstream","changes":1}`,
			`publish {"event":"publish","revision":7,"changes":1,"proxies":["edge","gw"],"took_ms":1.5}`,
			`connect {"event":"connect","proxy":"gw","envoy":"10.0.0.9:4000","version":"1.39.3"}`,
			`ack {"event":"ack","revision":7,"proxy":"gw","envoy":"10.0.0.9:4000","version":"1.39.3","type":"cluster","resources":["blue"]}`,
			`nack {"event":"nack","revision":7,"proxy":"gw","envoy":"10.0.0.9:4000","version":"1.39.3","type":"cluster",` +
				`"resources":["a","b","c","d","e","f","g","h","i","j"],"more":2,"message":"bad <port>\nin blue"}`,
			`applied {"event":"applied","revision":7,"proxy":"gw","envoy":"10.0.0.9:4000","version":"1.39.3"}`,
			`disconnect {"event":"disconnect","proxy":"gw","envoy":"10.0.0.9:4000","version":"1.39.3"}`,
			`change {"event":"change","revision":8,"actor":"ann","request":"DELETE /upstream/blue","changes":1}`,
		} {
			got, _ := r.next()
			Expect(got).To(Equal(want))
		}
	})

	change := func(n int) (status.Event, string) {
		return status.Event{Revision: int64(n)}, fmt.Sprintf(`change {"event":"change","revision":%d}`, n)
	}
	// tell publishes changes from one revision to another.
	tell := func(registry *status.Registry, from, to int) {
		for n := from; n <= to; n++ {
			e, _ := change(n)
			registry.RecordChange(e)
		}
	}
	expect := func(r *eventReader, from, to int) (lastID string) {
		GinkgoHelper()
		for n := from; n <= to; n++ {
			_, want := change(n)
			got, id := r.next()
			Expect(got).To(Equal(want))
			lastID = id
		}
		return lastID
	}

	It("continues after Last-Event-ID, whatever happened in between", func() {
		a, registry := withEvents()
		tell(registry, 1, 3)
		r := a.openEvents("")
		start := r.started()
		tell(registry, 4, 5)
		last := expect(r, 4, 4)
		Expect(r.Close()).To(Succeed())
		tell(registry, 6, 400)
		r = a.openEvents(last)
		Expect(r.block()).To(Equal([]string{"retry: 1000"}))
		expect(r, 5, 400)
		tell(registry, 401, 401)
		expect(r, 401, 401)

		// Also where the stream ended before its first event.
		r = a.openEvents(start)
		r.block()
		expect(r, 4, 401)
	})

	DescribeTable("reports that events were lost, and continues from now", func(id func(*status.Feed) string) {
		a, registry := withEvents()
		tell(registry, 1, 10)
		r := a.openEvents(id(registry.Feed()))
		r.block()
		got, resetID := r.next()
		Expect(got).To(Equal(lost))
		tell(registry, 11, 12)
		expect(r, 11, 12)
		r = a.openEvents(resetID)
		r.block()
		expect(r, 11, 12)
	},
		Entry("for an id of another process", func(*status.Feed) string { return status.NewRegistry().Feed().Now().String() }),
		Entry("for an id of no process", func(*status.Feed) string { return "17" }),
		Entry("for an id in the future", func(f *status.Feed) string { return strings.Replace(f.Now().String(), "-10", "-11", 1) }),
		Entry("for an id before the beginning", func(f *status.Feed) string { return strings.Replace(f.Now().String(), "-10", "--1", 1) }),
	)

	It("keeps the newest 4096 events for clients that reconnect", func() {
		a, registry := withEvents()
		r := a.openEvents("")
		start := r.started()
		Expect(r.Close()).To(Succeed())
		tell(registry, 1, 4096)
		r = a.openEvents(start)
		r.block()
		expect(r, 1, 4096)
		Expect(r.Close()).To(Succeed())
		tell(registry, 4097, 4097)
		r = a.openEvents(start)
		r.block()
		got, _ := r.next()
		Expect(got).To(Equal(lost))
	})

	It("is not delayed by a slow reader, which is told what it lost", func() {
		a, registry := withEvents()
		slow, quick := a.openEvents(""), a.openEvents("")
		slow.started()
		quick.started()
		long := strings.Repeat("x", 4<<10)
		const rounds, each = 12, 1000 // 48 MiB: more than a connection holds
		for range rounds {
			for range each {
				registry.RecordChange(status.Event{Actor: long})
			}
			for range each {
				Expect(quick.told()[1]).To(Equal("event: change"))
			}
		}
		resets, expected, last := 0, 1, ""
		for expected <= rounds*each {
			lines := slow.told()
			if lines == nil { // it took nothing for too long and was cut off
				slow = a.openEvents(last)
				slow.block()
				continue
			}
			last = strings.TrimPrefix(lines[0], "id: ")
			n, err := strconv.Atoi(last[strings.LastIndexByte(last, '-')+1:])
			Expect(err).NotTo(HaveOccurred())
			if lines[1] == "event: reset" {
				resets++
			} else {
				Expect(n).To(Equal(expected))
			}
			expected = n + 1
		}
		Expect(resets).To(BeNumerically(">", 0))
	})

	It("outlives the request timeout, and sends something when nothing happens", func() {
		a, registry := withEvents()
		server := httptest.NewUnstartedServer(rest.New(rest.Options{Store: a.store, Live: inspect.Sources{Status: registry}, Ping: 100 * time.Millisecond}))
		server.Config.ReadTimeout = time.Second
		server.Start()
		DeferCleanup(server.Close)
		a.url = server.URL
		r := a.openEvents("")
		r.started()
		for range 15 { // 1.5 s
			Expect(r.block()).To(Equal([]string{": ping"}))
		}
		Expect(r.Close()).To(Succeed())
	})

	It("ends when the server stops", func() {
		stopping, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		a, _ := withEvents(func(o *rest.Options) {
			o.OnStop = func(f func()) func() bool { return context.AfterFunc(stopping, f) }
		})
		r := a.openEvents("")
		r.started()
		stop()
		Expect(r.block()).To(BeNil())
		Expect(r.lines.Err()).NotTo(HaveOccurred())
	})

	It("ends when its token is revoked", func() {
		a, registry := withEvents(guarded, func(o *rest.Options) { o.Ping = 20 * time.Millisecond })
		viewer := a.makeToken(adminToken, "ci", "viewer")
		r := a.openEvents("", "Authorization", "Bearer "+viewer)
		r.started()
		Expect(r.block()).To(Equal([]string{": ping"}))
		Expect(a.send("DELETE", "/token/ci", adminToken, "").status).To(Equal(200))
		Eventually(r.block).Should(BeNil())
		registry.RecordChange(status.Event{Revision: 1})
	})

	It("supports HEAD, takes no parameters, and is not JSON", func() {
		a, _ := withEvents()
		head := a.do("HEAD", "/events", "", nil)
		Expect(head.status).To(Equal(200))
		Expect(head.header.Get("Content-Type")).To(Equal("text/event-stream"))
		a.get("/events?since=1").expectProblem(400, invalid("/events", "since", "unknown query parameter; this call takes none"))
		Expect(a.do("GET", "/events", "", nil, "Accept", "application/json").status).To(Equal(406))
		Expect(startAPI().get("/events").status).To(Equal(404))
	})
})

var _ = Describe("GET /metrics", func() {
	It("returns the collected metrics to clients that may read", func() {
		var seen []string
		with := func(o *rest.Options) {
			o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
				_, _ = io.WriteString(w, "gatehouse_revision 7\n")
			})
			o.Observe = func(_ context.Context, method, path string, status int, took time.Duration) {
				Expect(took).To(BeNumerically(">", 0))
				seen = append(seen, fmt.Sprint(method, " ", path, " ", status))
			}
		}
		a := startAPI(with)
		got := a.get("/metrics")
		Expect(got.body).To(Equal("gatehouse_revision 7\n"))
		Expect(a.do("GET", "/metrics", "", nil, "Accept", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1").status).To(Equal(200))
		Expect(a.do("GET", "/metrics", "", nil, "Accept", "application/json").status).To(Equal(406))
		Expect(a.post("/upstream/copy/a/b", "").status).To(Equal(404))
		Expect(a.get("/nope").status).To(Equal(404))
		Expect(seen).To(Equal([]string{
			"GET /metrics 200", "GET /metrics 200", "GET /metrics 406", "POST /upstream/copy/:upstream/:copy 404", "GET  404",
		}))
		Expect(startAPI(with, guarded).send("GET", "/metrics", "", "").status).To(Equal(401))
	})
})
