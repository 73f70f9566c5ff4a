package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// waited is one wait that a write asked for.
type waited struct {
	revision int64
	changed  string // keys
	limit    time.Duration
}

// withWait starts an API with some lags.
func withWait(lags ...status.Lag) (a *api, waits *[]waited) {
	GinkgoHelper()
	waits = &[]waited{}
	var mu sync.Mutex
	return startAPI(func(o *rest.Options) {
		o.Wait = func(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
			deadline, _ := ctx.Deadline()
			var keys []string
			for _, key := range changed {
				keys = append(keys, key.Path())
			}
			mu.Lock()
			defer mu.Unlock()
			*waits = append(*waits, waited{revision, strings.Join(keys, " "), time.Until(deadline)})
			return lags
		}
	}), waits
}

const (
	lagJSON     = `"lagging":[{"proxy":"gw","envoy":"10.0.0.9:4000","reason":"refused","message":"bad port"},{"proxy":"edge","reason":"not_connected","message":"no Envoy"}]`
	waitApplied = "?wait=applied&timeout=5s"
)

var lags = []status.Lag{
	{Proxy: "gw", Envoy: "10.0.0.9:4000", Reason: status.Refused, Message: "bad port"},
	{Proxy: "edge", Reason: status.NotConnected, Message: "no Envoy"},
}

var _ = Describe("?wait=applied", func() {
	DescribeTable("waits for every kind of write, and reports what lags", func(method, path, body string, status int, text, changed string) {
		send := func(a *api) answer {
			GinkgoHelper()
			contentType := form
			if path == "/config" {
				contentType = "application/yaml"
			}
			return a.do(method, path+waitApplied, contentType, strings.NewReader(body))
		}
		a, waits := withWait()
		a.given(everything()...)
		Expect(*waits).To(BeEmpty())
		got := send(a)
		got.expectJSON(status, text)
		Expect(*waits).To(HaveLen(1))
		Expect((*waits)[0].changed).To(Equal(changed))
		Expect(fmt.Sprint((*waits)[0].revision)).To(Equal(got.header.Get("Gatehouse-Revision")))
		Expect((*waits)[0].limit).To(And(BeNumerically(">", 0), BeNumerically("<=", 5*time.Second)))
		etag := got.header.Get("ETag")

		a, _ = withWait(lags...)
		a.given(everything()...)
		got = send(a)
		if strings.HasPrefix(text, `{"name"`) {
			text = `{"name":"two","data":{` + lagJSON + `}}`
		} else {
			text = strings.TrimSuffix(text, "}}") + "," + lagJSON + "}}"
		}
		Expect(got.status).To(Equal(202))
		Expect(got.body).To(MatchJSON(text))
		Expect(got.header.Get("Gatehouse-Revision")).To(Equal(fmt.Sprint((*waits)[0].revision)))
		Expect(got.header.Get("ETag")).To(Equal(etag))
	},
		Entry(nil, "POST", "/upstream", "Upstream_name=red&Upstream_ip=10.0.0.2&Upstream_port=80", 201, `{"data":{"insert_core_db_upstream":{"affected_rows":1}}}`, "/upstream/red"),
		Entry(nil, "POST", "/proxy", "Name=two", 201, `{"name":"two"}`, "/proxy/two"),
		Entry(nil, "PUT", "/service/shop", "fqdn=*", 200, `{"data":{"update_core_db_service":{"affected_rows":1}}}`, "/service/shop"),
		Entry(nil, "PUT", "/service/till", "fqdn=*", 201, `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "/service/till"),
		Entry(nil, "PATCH", "/upstream/blue", "Upstream_port=82", 200, `{"data":{"update_core_db_upstream":{"affected_rows":1}}}`, "/upstream/blue"),
		Entry("without any effect", "PATCH", "/upstream/blue", "Upstream_port=8081", 200, `{"data":{"update_core_db_upstream":{"affected_rows":1}}}`, "/upstream/blue"),
		Entry(nil, "DELETE", "/service/shop/route/root", "", 200, `{"data":{"delete_core_db_route":{"affected_rows":1}}}`,
			"/service/shop/route/root/upstream/blue /service/shop/route/root"),
		Entry("that existed already", "POST", "/proxy/gw/service/shop", "", 200, `{"data":{"insert_core_db_proxy_service":{"affected_rows":0}}}`, "/proxy/gw/service/shop"),
		Entry("that was stored already", "PUT", "/service/shop", "fqdn=shop.example.com", 200, `{"data":{"update_core_db_service":{"affected_rows":1}}}`, "/service/shop"),
		Entry(nil, "DELETE", "/proxy/gw/service/shop", "", 200, `{"data":{"delete_core_db_proxy_service":{"affected_rows":1}}}`, "/proxy/gw/service/shop"),
		Entry(nil, "POST", "/service/copy/shop/till", "", 201, `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "/service/till"),
		Entry(nil, "POST", "/revision/5/rollback", "", 200, `{"data":{"rollback_core_db_revision":{"affected_rows":1}}}`, "/proxy/gw/service/shop"),
		Entry(nil, "PUT", "/config", "version: 1\nproxies:\n- name: gw\n  services: []\n", 200,
			`{"data":{"created":0,"updated":0,"deleted":1,"unchanged":1,"changes":[{"action":"delete","path":"/proxy/gw/service/shop","kind":"proxy_service",`+
				`"fields":[{"field":"proxy_name","before":"gw"},{"field":"service_name","before":"shop"}]}],"warnings":[]}}`, "/proxy/gw/service/shop"),
	)

	It("waits 30 s by default", func() {
		a, waits := withWait()
		a.post("/proxy?wait=applied", "Name=gw").expectWrite(201, `{"name":"gw"}`, "1")
		Expect((*waits)[0].limit).To(And(BeNumerically(">", 25*time.Second), BeNumerically("<=", 30*time.Second)))
	})

	It("does not wait for a write that failed", func() {
		a, waits := withWait()
		a.given(everything()...)
		Expect(a.delete("/upstream/blue" + waitApplied).status).To(Equal(409))
		Expect(a.post("/proxy"+waitApplied, "Name=gw").status).To(Equal(409))
		Expect(*waits).To(BeEmpty())
	})

	DescribeTable("is refused", func(query string, errs ...string) {
		a, waits := withWait()
		a.given(everything()...)
		a.delete("/proxy/gw/service/shop?"+query).expectProblem(400, invalid("/proxy/gw/service/shop", errs...))
		Expect(*waits).To(BeEmpty())
		Expect(a.revision()).To(Equal(int64(6)))
	},
		Entry(nil, "wait=sent", "wait", `\"sent\" must be applied, the only value`),
		Entry(nil, "wait=", "wait", `\"\" must be applied, the only value`),
		Entry(nil, "wait=applied&timeout=5", "timeout", `\"5\" is not a duration above 0 and at most 10m, such as 500ms or 5s`),
		Entry(nil, "wait=applied&timeout=0s", "timeout", `\"0s\" is not a duration above 0 and at most 10m, such as 500ms or 5s`),
		Entry(nil, "wait=applied&timeout=601s", "timeout", `\"601s\" is not a duration above 0 and at most 10m, such as 500ms or 5s`),
		Entry(nil, "timeout=5s", "timeout", "requires wait=applied"),
		Entry(nil, "wait=applied&dry_run=true", "wait", "cannot be combined with dry_run, which applies nothing"),
	)

	It("is refused if there is nothing to wait for", func() {
		startAPI().post("/proxy?wait=applied", "Name=gw").expectProblem(400, invalid("/proxy", "wait", "is not available here: this API serves no Envoys"))
	})

	Describe("while it lasts", func() {
		// waiting starts an API whose waits end with their contexts; each is in
		// began.
		waiting := func(change ...func(*rest.Options)) (a *api, began chan context.Context) {
			GinkgoHelper()
			began = make(chan context.Context, 100)
			return startAPI(append(change, func(o *rest.Options) {
				o.Wait = func(ctx context.Context, _ int64, _ []model.Key) []status.Lag {
					began <- ctx
					<-ctx.Done()
					return lags
				}
			})...), began
		}
		// inBackground makes a write, whose answer is in the channel.
		inBackground := func(ctx context.Context, a *api, path string) chan int {
			answered := make(chan int, 1)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, strings.NewReader("Name=gw"+fmt.Sprint(len(path))))
			Expect(err).NotTo(HaveOccurred())
			req.Header.Set("Content-Type", form)
			go func() {
				defer close(answered)
				if res, err := a.client.Do(req); err == nil {
					answered <- res.StatusCode
					res.Body.Close()
				}
			}()
			return answered
		}

		It("delays no other write, and the change remains stored", func() {
			a, began := waiting()
			ctx, giveUp := context.WithCancel(context.Background())
			defer giveUp()
			first := inBackground(ctx, a, "/proxy?wait=applied&timeout=60s")
			Eventually(began).Should(Receive())
			Expect(a.revision()).To(Equal(int64(1)))
			a.post("/proxy", "Name=two").expectWrite(201, `{"name":"two"}`, "2")
			a.post("/proxy?wait=applied&timeout=1ms", "Name=three").expectJSON(202, `{"data":{`+lagJSON+`},"name":"three"}`)
			Consistently(first, 50*time.Millisecond).ShouldNot(Receive())
			giveUp()
			Eventually(first).Should(BeClosed())
		})

		It("ends when the client disconnects", func() {
			a, began := waiting()
			ctx, giveUp := context.WithCancel(context.Background())
			answered := inBackground(ctx, a, "/proxy?wait=applied&timeout=60s")
			var wait context.Context
			Eventually(began).Should(Receive(&wait))
			giveUp()
			Eventually(wait.Done()).Should(BeClosed())
			Eventually(answered).Should(BeClosed())
		})

		It("ends with an answer when the server stops", func() {
			stopping, stop := context.WithCancel(context.Background())
			defer stop()
			a, began := waiting(func(o *rest.Options) {
				o.OnStop = func(f func()) func() bool { return context.AfterFunc(stopping, f) }
			})
			answered := inBackground(context.Background(), a, "/proxy?wait=applied&timeout=60s")
			Eventually(began).Should(Receive())
			stop()
			Eventually(answered).Should(Receive(Equal(202)))
		})

		It("outlives the request timeout", func() {
			a, _ := withWait()
			over := make(chan error, 1)
			server := httptest.NewUnstartedServer(rest.New(rest.Options{
				Store: a.store,
				Wait: func(ctx context.Context, _ int64, _ []model.Key) []status.Lag {
					select {
					case <-ctx.Done():
					case <-time.After(1500 * time.Millisecond):
					}
					over <- ctx.Err()
					return nil
				},
			}))
			server.Config.ReadTimeout = time.Second
			server.Start()
			DeferCleanup(server.Close)
			a.url = server.URL
			a.post("/proxy?wait=applied", "Name=gw").expectWrite(201, `{"name":"gw"}`, "1")
			Expect(<-over).NotTo(HaveOccurred())
		})
	})
})
