package providers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func TestProviders(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "providers")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() {
		Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
})

// quick returns times in which a spec sees what otherwise takes minutes.
func quick() providers.Times {
	return providers.Times{
		Every: 50 * time.Millisecond, Least: 20 * time.Millisecond, Most: time.Hour, FirstRetry: 10 * time.Millisecond, LastRetry: 40 * time.Millisecond,
		Apart: 10 * time.Millisecond, Note: 10 * time.Millisecond,
	}
}

// slow returns times in which no request is repeated by itself.
func slow() providers.Times {
	return providers.Times{Every: time.Hour, Least: time.Hour, FirstRetry: time.Hour, LastRetry: time.Hour, Apart: time.Hour, Note: time.Millisecond}
}

// world is a database, a provider, and a watch of both.
type world struct {
	*providers.Watch
	*testkit.Provider
	store  *sqlstore.Store
	status *status.Registry
	log    *testkit.Output
	at     model.Mark
	stop   func()
	// timeout is the client's timeout.
	timeout time.Duration
	// ask and notes replace the client and the store; nil means that they do not.
	ask   func(ctx context.Context, source model.ProviderSource, via *oidc.Via) (oidc.Answer, error)
	notes store.Notes
}

func newWorld(times providers.Times) *world {
	GinkgoHelper()
	w := &world{timeout: 5 * time.Second}
	ring, _, err := seal.OpenOrCreate(filepath.Join(GinkgoT().TempDir(), "keys.json"))
	Expect(err).NotTo(HaveOccurred())
	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	w.store, err = sqlstore.Open(context.Background(), sqlstore.Options{URL: url, Sealer: ring})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(w.store.Close()).To(Succeed()) })
	w.Provider, err = testkit.StartProvider(testkit.CertificateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Close)
	w.start(times)
	return w
}

// start starts a watch that knows nothing, as a new process does.
func (w *world) start(times providers.Times) {
	GinkgoHelper()
	if w.stop != nil {
		w.stop()
	}
	w.status, w.log, w.at = status.NewRegistry(), &testkit.Output{}, model.Mark{}
	loopback, err := egress.ParseEntry("127.0.0.0/8")
	Expect(err).NotTo(HaveOccurred())
	client := oidc.NewClient(oidc.Options{Authorities: w.Authority.PEM, Rules: oidc.Rules{Allow: []egress.Entry{loopback}}, Timeout: w.timeout})
	ask, notes := client.Ask, store.Notes(w.store)
	if w.ask != nil {
		ask = w.ask
	}
	if w.notes != nil {
		notes = w.notes
	}
	w.Watch = providers.New(providers.Options{
		Source: w.store, Ask: ask, Notes: notes, Status: w.status, Log: slog.New(slog.NewTextHandler(w.log, nil)), Times: times,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	watch := w.Watch
	go func() { ended <- watch.Run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	}
	DeferCleanup(w.stop)
}

// put stores objects.
func (w *world) put(objects ...model.Object) {
	GinkgoHelper()
	_, err := w.store.Write(context.Background(), store.Origin{}, func(to store.Writer) error {
		for _, o := range objects {
			if _, err := store.Put(to, o); err != nil {
				return err
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

func (w *world) remove(keys ...model.Key) {
	GinkgoHelper()
	_, err := w.store.Write(context.Background(), store.Origin{}, func(to store.Writer) error {
		for _, k := range keys {
			if err := store.Delete(to, k); err != nil {
				return err
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

// read does what the build loop does after a signal.
func (w *world) read() model.Change {
	GinkgoHelper()
	change, err := w.Since(context.Background(), w.at)
	Expect(err).NotTo(HaveOccurred())
	w.at = model.Mark{Revision: change.Revision, ID: change.ID}
	return change
}

// learn reads changes until something is learned for a login.
func (w *world) learn(key model.Key) *model.Provider {
	GinkgoHelper()
	all := w.learnAll(key)
	if len(all) == 0 {
		return nil
	}
	Expect(all).To(HaveLen(1))
	return all[0]
}

// learnAll does the same for tokens of several issuers.
func (w *world) learnAll(key model.Key) model.Providers {
	GinkgoHelper()
	for {
		Eventually(w.Changed()).Should(Receive())
		if all, ok := w.read().Learned[key]; ok {
			return all
		}
	}
}

// login returns a filter with an issuer, or with additional fields.
func (w *world) login(name string, fields ...string) *model.Filter {
	config := map[string]string{"client_id": "a", "client_secret": "s3cret", "cookie_secret": "cookies", "redirect_uri": "/callback", "issuer": w.Issuer()}
	for i := 0; i < len(fields); i += 2 {
		config[fields[i]] = fields[i+1]
	}
	text, _ := json.Marshal(config)
	return &model.Filter{Name: name, Type: model.FilterOIDC, Config: model.JSON(text)}
}

// shop returns a service with a login, and the objects that it names.
func (w *world) shop() []model.Object {
	s := model.NewService()
	s.Name = "shop"
	s.FQDN = "shop.example"
	return []model.Object{
		&model.Secret{Name: "cookies", Type: model.SecretGeneric, Value: "0123456789abcdef0123456789abcdef"},
		w.login("login"), s, &model.ServiceFilter{Service: "shop", Filter: "login"},
	}
}

// conditions lists the conditions.
func (w *world) conditions() (list []string) {
	for _, c := range w.status.Conditions() {
		list = append(list, fmt.Sprintf("%s %s: %s", c.Key.Path(), c.Code, c.Message))
	}
	return list
}

// events lists the events about providers.
func (w *world) events(from status.Cursor) (list []string) {
	events, _ := w.status.Feed().After(from, 100)
	for _, e := range events {
		list = append(list, e.Object+" "+e.Code+": "+e.Message)
	}
	return list
}
