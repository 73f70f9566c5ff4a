package rest_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func conflict(code, title, path, detail, more string) string {
	return `{"type":"urn:gatehouse:problem:` + code + `","title":"` + title + `","status":409,"detail":"` + detail +
		`","instance":"` + path + `","code":"` + code + `"` + more + `}`
}

var _ = Describe("Rules between objects", func() {
	DescribeTable("a name can be used once", func(path, form, object string) {
		a := startAPI()
		a.given(everything()...)
		a.post(path, form).expectProblem(409, conflict("already_exists", "The name is taken", path,
			object+" already exists; choose another name, or delete the existing one first", ""))
		Expect(a.revision()).To(Equal(int64(6)))
	},
		Entry(nil, "/upstream", "Upstream_name=blue&Upstream_ip=::1&Upstream_port=1", `upstream \"blue\"`),
		Entry(nil, "/service", "Service_Name=shop&fqdn=other.example.com", `service \"shop\"`),
		Entry(nil, "/service/shop/route", "Route_Name=root&Route_prefix=/x", `route \"root\" of service \"shop\"`),
		Entry(nil, "/proxy", "Name=gw", `proxy \"gw\"`),
	)

	DescribeTable("an object in use cannot be deleted", func(path, object, user string) {
		a := startAPI()
		a.given(everything()...)
		a.delete(path).expectProblem(409, conflict("in_use", "The object is in use", path,
			object+" is in use; detach it from the objects in referenced_by, then delete it", `,"referenced_by":["`+user+`"]`))
		Expect(a.revision()).To(Equal(int64(6)))
	},
		Entry(nil, "/upstream/blue", `upstream \"blue\"`, "/service/shop/route/root"),
		Entry(nil, "/service/shop", `service \"shop\"`, "/proxy/gw"),
	)

	It("a proxy serves a host with one service", func() {
		a := startAPI()
		a.given(everything()...)
		a.given("/service", "Service_Name=second&fqdn=SHOP.example.com")
		a.post("/proxy/gw/service/second", "").expectProblem(409, conflict("conflict", "It conflicts with the current state", "/proxy/gw/service/second",
			`proxy \"gw\" already serves host \"SHOP.example.com\" with service \"shop\"; detach that service first, or change one of the two hosts`, ""))
	})

	It("the change log records who wrote what", func() {
		origins := &recorder{}
		a := startAPI(func(o *rest.Options) {
			origins.Store = o.Store
			o.Store = origins
		})
		a.given("/service", "Service_Name=shop&fqdn=*")
		a.delete("/service/sh%6Fp")
		Expect(origins.seen).To(Equal([]store.Origin{
			{Actor: "api", Request: "POST /service"}, {Actor: "api", Request: "DELETE /service/sh%6Fp"},
		}))
	})
})

type recorder struct {
	store.Store
	seen []store.Origin
}

func (r *recorder) Write(ctx context.Context, o store.Origin, fn func(store.Writer) error) (int64, error) {
	r.seen = append(r.seen, o)
	return r.Store.Write(ctx, o, fn)
}

// atOnce makes n calls at the same time and counts their answers.
func atOnce(n int, call func() answer) map[string]int {
	GinkgoHelper()
	var (
		mu      sync.Mutex
		answers = map[string]int{}
		wg      sync.WaitGroup
		start   = make(chan struct{})
	)
	for range n {
		wg.Go(func() {
			defer GinkgoRecover()
			<-start
			got := call()
			mu.Lock()
			defer mu.Unlock()
			answers[http.StatusText(got.status)]++
		})
	}
	close(start)
	wg.Wait()
	return answers
}

var _ = Describe("Requests at the same time", func() {
	It("create a name once", func() {
		a := startAPI()
		Expect(atOnce(8, func() answer { return a.post("/service", "Service_Name=shop&fqdn=*") })).
			To(Equal(map[string]int{"Created": 1, "Conflict": 7}))
		Expect(a.revision()).To(Equal(int64(1)))
	})

	It("attach once", func() {
		a := startAPI()
		a.given(everything()[:8]...)
		Expect(atOnce(8, func() answer { return a.post("/proxy/gw/service/shop", "") })).
			To(Equal(map[string]int{"Created": 1, "OK": 7}))
		Expect(a.revision()).To(Equal(int64(5)))
	})

	It("attach once even if the database detects it late", func() {
		a := startAPI(func(o *rest.Options) { o.Store = &lateStore{Store: o.Store} })
		a.given(everything()[:8]...)
		a.post("/proxy/gw/service/shop", "").
			expectWrite(200, `{"data":{"insert_core_db_proxy_service":{"affected_rows":0}}}`, "5")
	})
})

// lateStore lets another request attach first: the write that makes a link
// finds that it exists only when it inserts.
type lateStore struct {
	store.Store
	once sync.Once
}

func (s *lateStore) Write(ctx context.Context, o store.Origin, fn func(store.Writer) error) (int64, error) {
	var late error
	if o.Request == "POST /proxy/gw/service/shop" {
		s.once.Do(func() {
			if _, err := s.Store.Write(ctx, o, fn); err != nil {
				late = err
				return
			}
			late = model.ExistsError(model.ProxyServiceKey("gw", "shop"))
		})
	}
	if late != nil {
		return 0, late
	}
	return s.Store.Write(ctx, o, fn)
}

// brokenStore answers every read with err, or panics where err is nil.
type brokenStore struct {
	store.Store
	err error
}

func (s brokenStore) Read(context.Context, func(store.Reader) error) error {
	if s.err == nil {
		panic("a bug")
	}
	return s.err
}

var _ = Describe("Failures", func() {
	const internal = `{"type":"urn:gatehouse:problem:internal","title":"Internal error","status":500,"instance":"/service","code":"internal"}`

	fail := func(err error) (*api, answer) {
		a := startAPIThatFails(func(o *rest.Options) { o.Store = brokenStore{o.Store, err} })
		return a, a.get("/service")
	}

	It("of the database are answered with 503 and logged in one line", func() {
		a, got := fail(&model.Error{Kind: model.Unavailable, Message: "the database does not answer", Err: errors.New("dial 10.0.0.9")})
		got.expectProblem(503, `{"type":"urn:gatehouse:problem:unavailable","title":"Temporarily unavailable","status":503,`+
			`"detail":"the database does not answer","instance":"/service","code":"unavailable"}`)
		Expect(got.header.Get("Retry-After")).To(Equal("1"))
		Expect(a.log.String()).To(MatchRegexp(`^time=\S+ level=WARN msg="request not served" method=GET path=/service err=".*dial 10.0.0.9"\n$`))
	})

	It("that are unexpected are answered with 500 without the cause, which is logged", func() {
		a, got := fail(errors.New("secret cause"))
		got.expectProblem(500, internal)
		Expect(a.log.String()).To(MatchRegexp(`^time=\S+ level=ERROR msg="request failed" method=GET path=/service err="secret cause"\n$`))
	})

	It("that are panics are treated the same, without the stack", func() {
		a, got := fail(nil)
		got.expectProblem(500, internal)
		Expect(a.log.String()).To(MatchRegexp(`^time=\S+ level=ERROR msg="request handler panicked" method=GET path=/service err="a bug"\n$`))
		a.get("/health").expectJSON(200, `{"status":"ok"}`)
	})

	It("are not logged if the client has disconnected", func() {
		var log lockedBuffer
		handler := rest.New(rest.Options{
			Store: brokenStore{nil, context.Canceled},
			Log:   slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})),
		})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/service", nil).WithContext(ctx))
		Expect(w.Code).To(Equal(503))
		Expect(log.String()).To(BeEmpty())
	})

	It("are not the only log lines: writes are logged at info", func() {
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=*")
		a.get("/service")
		a.post("/service", "")
		Expect(a.log.String()).To(MatchRegexp(`^time=\S+ level=INFO msg=write actor=api role="" method=POST path=/service status=201 rev=1 took=\S+\n` +
			`time=\S+ level=INFO msg=write actor=api role="" method=POST path=/service status=400 rev="" took=\S+\n$`))
	})
})
