package replicas_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

func TestReplicas(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "replicas")
}

var (
	server    *postgres.Server
	databases atomic.Int64
)

var _ = BeforeSuite(func(ctx SpecContext) {
	before := gleak.Goroutines()
	DeferCleanup(func() {
		Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	var err error
	server, err = postgres.Start(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
}, NodeTimeout(time.Minute))

// newDatabase makes a database without objects and returns its URL.
func newDatabase() string {
	GinkgoHelper()
	url, err := migrated.Postgres(context.Background(), server, fmt.Sprintf("spec_%d", databases.Add(1)))
	Expect(err).NotTo(HaveOccurred())
	return url
}

// sqlOn runs a statement on a database, and query reads one number.
func sqlOn(url, statement string, args ...any) {
	GinkgoHelper()
	conn, err := pgx.Connect(context.Background(), url)
	Expect(err).NotTo(HaveOccurred())
	_, err = conn.Exec(context.Background(), statement, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close(context.Background())).To(Succeed())
}

func query(url, question string) (n int64) {
	GinkgoHelper()
	conn, err := pgx.Connect(context.Background(), url)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.QueryRow(context.Background(), question).Scan(&n)).To(Succeed())
	Expect(conn.Close(context.Background())).To(Succeed())
	return n
}

// replica is one control plane as the others see it: a real board, and a registry in
// which the spec makes Envoys come and go.
type replica struct {
	*replicas.Hub
	registry *status.Registry
	events   status.Cursor
	store    *sqlstore.Store
	built    model.Mark
	// stop stops it without notifying the others.
	stop func()
}

// options of a spec's replica.
type options struct {
	wait func(ctx context.Context, revision int64, changed []model.Key) []status.Lag
	// deaf says that it receives no notifications.
	deaf bool
}

// startReplica runs a replica on a database until the end of the spec.
func startReplica(url, name string, o options) *replica {
	GinkgoHelper()
	s, err := sqlstore.Open(context.Background(), sqlstore.Options{URL: url})
	Expect(err).NotTo(HaveOccurred())
	r := &replica{registry: status.NewRegistry(), store: s, built: model.Mark{Revision: 1, ID: "one"}}
	r.events = r.registry.Feed().Now()
	r.Hub = replicas.New(replicas.Options{
		Replica: name, Board: s.Board(), Registry: r.registry, Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil)), Wait: o.wait,
		Report: func() replicas.Report {
			return replicas.Observe(r.registry, r.built, func(string) int64 { return r.built.Revision })
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	count := 1
	r.Join(ctx)
	go func() { done <- r.Run(ctx) }()
	if !o.deaf {
		count++
		go func() { done <- s.Run(ctx) }()
	}
	r.stop = func() {
		if cancel == nil {
			return
		}
		cancel()
		cancel = nil
		for range count {
			Eventually(done).Should(Receive(BeNil()))
		}
	}
	DeferCleanup(func() error {
		r.stop()
		return s.Close()
	})
	return r
}

// connect adds an Envoy of gw that has revision 1.
func (r *replica) connect(id int64, address string) {
	r.registry.Connect(status.Envoy{ID: id, Proxy: "gw", Address: address, Version: "1.39.3", Connected: time.Now()})
	r.registry.SetProgress(id, status.Progress{Applied: 1})
}

// connectInstance is connect for an Envoy that says who it is.
func (r *replica) connectInstance(id int64, instance, address string) {
	r.registry.Connect(status.Envoy{ID: id, Proxy: "gw", Instance: instance, Address: address, Version: "1.39.3", Connected: time.Now()})
	r.registry.SetProgress(id, status.Progress{Applied: 1})
}

// envoys returns the Envoys of the others, as name: address state.
func (r *replica) envoys() (list []string) {
	for _, o := range r.Others() {
		for _, e := range o.Envoys {
			state := "current"
			if !e.Current {
				state = "not current"
			}
			if o.Unheard {
				state = "unheard"
			}
			list = append(list, fmt.Sprintf("%s: %s %s", o.Replica, e.Address, state))
		}
	}
	return list
}

// told returns the events since the replica was started, except those of its own
// Envoys.
func (r *replica) told() (list []string) {
	events, _ := r.registry.Feed().After(r.events, 4096)
	for _, e := range events {
		if e.Replica != "" {
			list = append(list, fmt.Sprintf("%s %s %s%s", e.Replica, e.Event, e.Envoy, e.Message))
		}
	}
	return list
}
