package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// streams is a server of events: each connection gets the next text and is closed,
// except the last one.
type streams struct {
	texts []string
	// lastIDs are the Last-Event-IDs of the clients.
	lastIDs []string
}

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer GinkgoRecover()
	Expect(r.URL.String()).To(Equal("/events"))
	Expect(r.Header.Get("Accept")).To(Equal("text/event-stream"))
	s.lastIDs = append(s.lastIDs, r.Header.Get("Last-Event-ID"))
	text := s.texts[0]
	s.texts = s.texts[1:]
	if text == "refuse" {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"detail":"the token is not valid","code":"unauthorized"}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	if len(s.texts) == 0 {
		Expect(http.NewResponseController(w).Flush()).To(Succeed())
		<-r.Context().Done()
	}
}

// following runs gatehouse events on streams; stop interrupts it.
func following(texts []string, args ...string) (out, errOut *gbytes.Buffer, ended chan int, stop func(), s *streams) {
	GinkgoHelper()
	s = &streams{texts: texts}
	server := httptest.NewServer(s)
	DeferCleanup(server.Close)
	GinkgoT().Setenv("GATEHOUSE_SERVER", server.URL)
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	out, errOut, ended = gbytes.NewBuffer(), gbytes.NewBuffer(), make(chan int, 1)
	root := newRoot()
	root.SetArgs(append([]string{"events"}, args...))
	root.SetOut(out)
	root.SetErr(errOut)
	go func() { ended <- exitCode(ctx, root.ExecuteContext(ctx), errOut) }()
	return out, errOut, ended, cancel, s
}

var _ = Describe("events", func() {
	event := func(id int, name, fields string) string {
		return fmt.Sprintf("id: e-%d\nevent: %s\ndata: {\"event\":\"%s\",\"at\":\"T%d\"%s}\n\n", id, name, name, id, fields)
	}
	const start = "retry: 1000\nid: e-1\n\n"

	It("shows a line for each event, and continues after a lost connection", func() {
		out, errOut, ended, stop, s := following([]string{
			start + event(2, "change", `,"revision":7,"actor":"ann","request":"POST /upstream","changes":1,"message":"for the sale"`) +
				": ping\n\n" + event(3, "publish", `,"revision":7,"proxies":["edge","gw"],"took_ms":1.5`) +
				event(4, "connect", `,"proxy":"gw","envoy":"10.0.0.9:4000","version":"1.39.3"`),
			event(5, "ack", `,"revision":7,"proxy":"gw","envoy":"10.0.0.9:4000","type":"cluster","resources":["blue","red"],"more":3`) +
				event(6, "nack", `,"revision":8,"proxy":"gw","envoy":"10.0.0.9:4000","type":"route","resources":["gw"],"message":"bad \u001b[31m"`) +
				event(7, "applied", `,"revision":7,"proxy":"gw","envoy":"10.0.0.9:4000"`) + event(8, "reset", `,"message":"events were lost"`) + event(9, "new", `,"x":1`),
		}, "-o", "table")
		Eventually(out, "10s").Should(gbytes.Say("T9"))
		Expect(string(out.Contents())).To(Equal("" +
			"T2  change      revision 7 by ann: POST /upstream (1 change): for the sale\n" +
			"T3  publish     revision 7 for edge, gw, built in 1.5 ms\n" +
			"T4  connect     gw at 10.0.0.9:4000, Envoy 1.39.3\n" +
			"T5  ack         gw at 10.0.0.9:4000: revision 7, cluster blue, red and 3 more\n" +
			"T6  nack        gw at 10.0.0.9:4000: revision 8, route gw: bad \\u001b[31m\n" +
			"T7  applied     gw at 10.0.0.9:4000: revision 7\n" +
			"T8  reset       events were lost\n" +
			"T9  new         {\"event\":\"new\",\"at\":\"T9\",\"x\":1}\n"))
		stop()
		Eventually(ended).Should(Receive(BeZero()))
		Expect(s.lastIDs).To(Equal([]string{"", "e-4"}))
		Expect(string(errOut.Contents())).To(Equal("gatehouse: the server ended the stream; connecting again in 500ms\ngatehouse: connected again\n"))
	})

	It("prints JSON in a pipe, one line for each event", func() {
		out, _, ended, stop, s := following([]string{start, start + event(2, "change", `,"revision":7`)})
		Eventually(out, "10s").Should(gbytes.Say("\n"))
		Expect(string(out.Contents())).To(Equal(`{"event":"change","at":"T2","revision":7}` + "\n"))
		stop()
		Eventually(ended).Should(Receive(BeZero()))
		Expect(s.lastIDs).To(Equal([]string{"", "e-1"}))
	})

	It("fails when the server refuses, at first or later", func() {
		_, errOut, ended, _, _ := following([]string{"refuse"})
		Eventually(ended).Should(Receive(Equal(1)))
		Expect(string(errOut.Contents())).To(HavePrefix("gatehouse: GET /events: the token is not valid (401 unauthorized)"))
		_, errOut, ended, _, _ = following([]string{start, "refuse"})
		Eventually(ended, "10s").Should(Receive(Equal(1)))
		Expect(string(errOut.Contents())).To(ContainSubstring("the token is not valid"))
	})

	It("fails when no server answers", func() {
		r := run1("", "events", "--server", "http://127.0.0.1:1")
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(ContainSubstring("is gatehouse serve running there?"))
	})
})
