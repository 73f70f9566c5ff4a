package acme

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// configuration is a source that has what a spec puts there.
type configuration struct {
	mu      sync.Mutex
	objects []model.Object
	changed chan struct{}
}

func (c *configuration) Changed() <-chan struct{} { return c.changed }

func (c *configuration) Since(context.Context, model.Mark) (model.Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change := model.Change{Full: true}
	for _, o := range c.objects {
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	return change, nil
}

// lab is an authority, a database, a gateway that answers challenges, and a watch whose clock a spec moves.
type lab struct {
	*Watch
	*configuration
	pebble   *testkit.Pebble
	store    *sqlstore.Store
	log      *testkit.Output
	ahead    atomic.Int64 // of the clock, in nanoseconds
	answers  sync.Map     // by host and token
	learned  sync.Mutex
	stop     func()
	patience time.Duration // if it is not 0, what slowAfter is
	// hangs are suffixes of hosts that do not answer before released is closed.
	hangs    atomic.Value
	released chan struct{}
}

func newLab(o testkit.PebbleOptions, config string) *lab {
	GinkgoHelper()
	l := &lab{configuration: &configuration{changed: make(chan struct{}, 1)}, released: make(chan struct{})}
	l.hangs.Store("nothing")
	ring, _, err := seal.OpenOrCreate(filepath.Join(GinkgoT().TempDir(), "keys.json"))
	Expect(err).NotTo(HaveOccurred())
	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	l.store, err = sqlstore.Open(context.Background(), sqlstore.Options{URL: url, Sealer: ring})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.store.Close()).To(Succeed()) })

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	gateway := &http.Server{Handler: http.HandlerFunc(l.answer), ReadHeaderTimeout: testkit.Patience}
	go func() { _ = gateway.Serve(listener) }()
	DeferCleanup(func() { close(l.released); Expect(gateway.Close()).To(Succeed()) })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	o.HTTPPort, err = strconv.Atoi(port)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	l.pebble, err = testkit.StartPebble(ctx, GinkgoT().TempDir(), o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(l.pebble.Close)

	l.put(
		&model.Secret{Name: "directory", Cert: l.pebble.Authority.PEM},
		&model.GlobalConfig{
			Name: "ca", Type: model.GlobalConfigACME,
			Config: model.JSON(`{"directory":"` + l.pebble.Directory + `","terms_agreed":true,"ca_certificate":"directory"` + config + `}`),
		},
	)
	l.start()
	DeferCleanup(func() { l.stop() })
	return l
}

// start starts a watch that knows nothing, as a new process does. The one before has ended.
func (l *lab) start() {
	GinkgoHelper()
	l.log = &testkit.Output{}
	l.Watch = New(Options{
		Source: l.configuration, Store: l.store, Status: status.NewRegistry(), Log: slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }, Holder: fmt.Sprint(time.Now().UnixNano()),
		Dial: new(net.Dialer).DialContext,
	})
	if l.patience > 0 {
		l.slowAfter = l.patience
	}
	l.WaitWith(func(ctx context.Context, _ int64, _ []model.Key) []status.Lag { l.learn(ctx); return nil })
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	watch := l.Watch
	group.Go(func() { _ = watch.Run(ctx) })
	group.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-watch.Changed():
				l.learn(ctx)
			case <-ctx.Done():
			}
		}
	})
	l.stop = func() { cancel(); group.Wait() }
	l.poke()
}

// learn does what the build loop does.
func (l *lab) learn(ctx context.Context) {
	l.learned.Lock()
	defer l.learned.Unlock()
	change, err := l.Watch.Since(ctx, model.Mark{})
	if err != nil {
		return // it is tried again
	}
	l.answers.Clear()
	for _, a := range change.Automatic {
		if a != nil && a.Challenge != nil {
			l.answers.Store(a.Host+model.ChallengePath+a.Challenge.Token, a.Challenge.Answer)
		}
	}
}

func (l *lab) answer(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	if strings.HasSuffix(host, l.hangs.Load().(string)) {
		select {
		case <-l.released:
		case <-r.Context().Done():
		}
		return
	}
	text, ok := l.answers.Load(host + r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(text.(string)))
}

// poke makes the watch look.
func (l *lab) poke() { signal(l.configuration.changed) }

// put adds objects.
func (l *lab) put(objects ...model.Object) {
	l.mu().Lock()
	l.objects = append(l.objects, objects...)
	l.mu().Unlock()
	l.poke()
}

func (l *lab) mu() *sync.Mutex { return &l.configuration.mu }

// order wants certificates for hosts.
func (l *lab) order(hosts ...string) {
	for _, host := range hosts {
		l.put(&model.Service{Name: host, FQDN: host, Mode: model.ModeHTTP, Certificate: model.CertificateAuto}, &model.ProxyService{Proxy: "gw", Service: host})
	}
}

// pass moves the clock.
func (l *lab) pass(d time.Duration) {
	l.ahead.Add(int64(d))
	l.poke()
}

// of returns what is known of the certificate of a host.
func (l *lab) of(host string) Certificate {
	for _, c := range l.List() {
		if c.Host == host {
			return c
		}
	}
	return Certificate{}
}

func (l *lab) state(host string) func() string {
	return func() string { return strings.TrimSuffix(l.of(host).State+": "+l.of(host).Reason, ": ") }
}

func (l *lab) serial(host string) func() string { return func() string { return l.of(host).Serial } }

// issued waits for the certificate of a host, and returns its serial number.
func (l *lab) issued(host string) string {
	GinkgoHelper()
	Eventually(l.state(host), testkit.Patience).Should(Equal("issued"), l.log.String)
	return l.of(host).Serial
}

// row returns what is stored of a host.
func (l *lab) row(host string) row {
	GinkgoHelper()
	l.Watch.mu.Lock()
	defer l.Watch.mu.Unlock()
	Expect(l.rows).To(HaveKey(host))
	return *l.rows[host]
}

// first returns what is wanted for the first host.
func (l *lab) first() wanted {
	l.Watch.mu.Lock()
	defer l.Watch.mu.Unlock()
	return l.list[0]
}
