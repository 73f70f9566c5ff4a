package sqlstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/storetest"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

var databases atomic.Int64

func newName() string { return fmt.Sprintf("spec_%d", databases.Add(1)) }

// newPostgres makes a database without objects and returns its URL.
func newPostgres(ctx context.Context) string {
	GinkgoHelper()
	url, err := migrated.Postgres(ctx, server, newName())
	Expect(err).NotTo(HaveOccurred())
	return url
}

// emptyPostgres makes a database without tables and returns its URL.
func emptyPostgres(ctx context.Context) string {
	GinkgoHelper()
	name := newName()
	Expect(server.CreateDatabase(ctx, name)).To(Succeed())
	return server.URL(name)
}

// openStore opens a store that never polls during the spec, and runs it.
func openStore(ctx context.Context, url string) *sqlstore.Store {
	GinkgoHelper()
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, PollInterval: time.Hour})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	DeferCleanup(func() error {
		cancel()
		Eventually(done, "10s").Should(Receive(BeNil()))
		return s.Close()
	})
	return s
}

// addProxy stores a proxy, the smallest change there is.
func addProxy(ctx context.Context, s store.Store, name string) error {
	_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
		return w.Insert(&model.Proxy{Name: name})
	})
	return err
}

var _ = Describe("Postgres", func() {
	storetest.Specs(
		func(ctx context.Context) storetest.Open { return opener(newPostgres(ctx)) },
		func(ctx context.Context) storetest.Open { return opener(emptyPostgres(ctx)) },
	)

	It("does not create a database that must already be in use", func(ctx SpecContext) {
		url := emptyPostgres(ctx)
		opts := sqlstore.Options{URL: url, InUse: true}
		for range 2 {
			_, err := sqlstore.Open(ctx, opts)
			Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(And(HavePrefix(`the database "spec_`), ContainSubstring(`" of Postgres at `), ContainSubstring(" holds no tables of Gatehouse (name the one that is in use"))))
		}
		openStore(ctx, url)
		s, err := sqlstore.Open(ctx, opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
	})

	It("hears of each change of another process immediately", func(ctx SpecContext) {
		url := newPostgres(ctx)
		one, two := openStore(ctx, url), openStore(ctx, url)
		for i := range 5 {
			// Only the first may be found when the listener connects, not the rest.
			Expect(addProxy(ctx, one, fmt.Sprint("p", i))).To(Succeed())
			Eventually(ctx, two.Changed(), "15s").Should(Receive())
		}
	})

	It("reports that the server is away, and works again when it is back", func(ctx SpecContext) {
		url := newPostgres(ctx)
		one, two := openStore(ctx, url), openStore(ctx, url)
		Expect(addProxy(ctx, one, "before")).To(Succeed())
		Eventually(ctx, two.Changed(), "15s").Should(Receive())
		var mark model.Mark
		Expect(one.Read(ctx, func(r store.Reader) (err error) {
			mark, err = r.Mark()
			return err
		})).To(Succeed())

		Expect(server.Stop()).To(Succeed())
		DeferCleanup(server.Restart)
		for range 3 { // first with broken connections, then with none
			away := MatchError(HavePrefix("the database does not answer (check that Postgres at 127.0.0.1:"))
			Expect(addProxy(ctx, one, "away")).To(away)
			Expect(one.Ping(ctx)).To(away)
			_, err := one.Since(ctx, model.Mark{})
			Expect(err).To(away)
			Expect(model.IsKind(err, model.Unavailable)).To(BeTrue())
		}

		Expect(server.Restart(ctx)).To(Succeed())
		Expect(addProxy(ctx, one, "after")).To(Succeed())
		Eventually(ctx, two.Changed(), "15s").Should(Receive())
		Expect(addProxy(ctx, one, "again")).To(Succeed())
		Eventually(ctx, two.Changed(), "15s").Should(Receive())
		change, err := two.Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(change.Entries).To(HaveLen(2))
	})

	It("detects connections that broke while they were idle", func(ctx SpecContext) {
		s := openStore(ctx, newPostgres(ctx))
		Expect(addProxy(ctx, s, "before")).To(Succeed())
		Expect(server.Restart(ctx)).To(Succeed())
		Expect(addProxy(ctx, s, "after")).To(Succeed())
	})

	It("leaves everything unchanged if the connection breaks in the middle of a rollback", func(ctx SpecContext) {
		url := newPostgres(ctx)
		s := openStore(ctx, url)
		ports := func() (list []int) {
			Expect(s.Read(ctx, func(r store.Reader) error {
				objs, err := r.List(store.Query{Kind: model.KindProxy})
				for _, o := range objs {
					list = append(list, o.(*model.Proxy).HTTPPort)
				}
				return err
			})).To(Succeed())
			return list
		}
		for _, port := range []int{80, 81} {
			_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
				for i := range 1100 {
					p := &model.Proxy{Name: fmt.Sprint("p", i), HTTPPort: port}
					if port == 80 {
						Expect(w.Insert(p)).To(Succeed())
					} else {
						Expect(w.Replace(p)).To(Succeed())
					}
				}
				return nil
			})
			Expect(err).NotTo(HaveOccurred())
		}
		conn, err := pgx.Connect(ctx, url)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			return store.Rollback(&storetest.Interrupted{Writer: w, Before: func(page int) {
				if page == 3 {
					_, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
					Expect(err).NotTo(HaveOccurred())
				}
			}}, 1)
		})
		Expect(model.IsKind(err, model.Unavailable)).To(BeTrue(), "%v", err)
		Expect(ports()).To(And(HaveLen(1100), HaveEach(81)))
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error { return store.Rollback(w, 1) })
		Expect(err).NotTo(HaveOccurred())
		Expect(ports()).To(And(HaveLen(1100), HaveEach(80)))
	})

	DescribeTable("reports in one line why it cannot open", func(ctx SpecContext, url func() string, want string) {
		_, err := sqlstore.Open(ctx, sqlstore.Options{URL: url()})
		Expect(err).To(MatchError(HavePrefix(want)))
		Expect(err.Error()).NotTo(ContainSubstring("\n"))
		Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
	},
		Entry("a wrong password", func() string { return withPassword("wr0ng-s3cret") },
			"Postgres at 127.0.0.1:"),
		Entry("a missing database", func() string { return server.URL("none") }, "Postgres at 127.0.0.1:"),
		Entry("a closed port", func() string { return fmt.Sprintf("postgres://me:s3cret@127.0.0.1:%d/x", closedPort()) },
			"Postgres at 127.0.0.1:"),
		Entry("two addresses with closed ports", func() string { return fmt.Sprintf("postgresql://me:s3cret@localhost:%d/x", closedPort()) },
			"Postgres at localhost:"),
		Entry("a missing host", func() string { return "postgres://me:s3cret@gatehouse.invalid/x" },
			"Postgres at gatehouse.invalid:5432 cannot be found"),
		Entry("a slash in the password", func() string { return "postgres://me:s3cret/y@127.0.0.1/x" },
			"the database URL is not a URL (use sqlite:///"),
		Entry("an invalid port", func() string { return "postgres://me:s3cret@127.0.0.1:s3cret/x" },
			"the database URL is not a URL"),
		Entry("a parameter with an invalid value", func() string { return "postgres://me:s3cret@127.0.0.1/x?sslmode=s3cret" },
			"the database URL cannot be read"),
		Entry("another database", func() string { return "mysql://me:s3cret@127.0.0.1/x" },
			`the database URL has the unknown scheme "mysql"`),
		Entry("not a URL", func() string { return "gatehouse.db" }, "the database URL has no scheme"),
	)

	It("tells what to do about a password, a database and a closed port", func(ctx SpecContext) {
		_, err := sqlstore.Open(ctx, sqlstore.Options{URL: withPassword("wr0ng")})
		Expect(err).To(MatchError(ContainSubstring(`says: password authentication failed for user "with_password" (check the user and the password`)))
		_, err = sqlstore.Open(ctx, sqlstore.Options{URL: server.URL("none")})
		Expect(err).To(MatchError(HaveSuffix(`says: database "none" does not exist (create the database first: createdb none)`)))
		_, err = sqlstore.Open(ctx, sqlstore.Options{URL: fmt.Sprintf("postgres://127.0.0.1:%d/x", closedPort())})
		Expect(err).To(MatchError(HaveSuffix("refuses the connection (check that it is running and listens there)")))
	})

	DescribeTable("reports whether it is away, or answers and refuses", func(ctx SpecContext, url func() string, away bool) {
		_, err := sqlstore.Open(ctx, sqlstore.Options{URL: url()})
		Expect(err).To(HaveOccurred())
		Expect(sqlstore.IsAway(err)).To(Equal(away), err.Error())
	},
		Entry("a closed port", func() string { return fmt.Sprintf("postgres://127.0.0.1:%d/x", closedPort()) }, true),
		Entry("a host that has no address yet", func() string { return "postgres://gatehouse.invalid/x" }, true),
		Entry("a server that closes the connection", hangUp, true),
		Entry("a server that is starting", func() string { return refusing("57P03") }, true),
		Entry("a server without a free connection", func() string { return refusing("53300") }, true),
		Entry("a wrong password", func() string { return withPassword("wr0ng") }, false),
		Entry("a user that may not connect", func() string { return refusing("28000") }, false),
		Entry("a missing database", func() string { return server.URL("none") }, false),
		Entry("no right to make tables", func() string { return refusing("42501") }, false),
		Entry("a URL that names no database", func() string { return "mysql://127.0.0.1/x" }, false),
	)

	It("opens with a password", func(ctx SpecContext) {
		url := newPostgres(ctx)
		conn, err := pgx.Connect(ctx, url)
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "CREATE ROLE "+postgres.PasswordUser+" SUPERUSER LOGIN PASSWORD 's3cret'")
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.Close(ctx)).To(Succeed())
		s := openStore(ctx, strings.Replace(url, "postgres@", postgres.PasswordUser+":s3cret@", 1))
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
	})
})

func withPassword(password string) string {
	return strings.Replace(server.URL("postgres"), "postgres@", postgres.PasswordUser+":"+password+"@", 1)
}

// hangUp returns the URL of a server that closes each connection.
func hangUp() string { return fake(func(net.Conn) {}) }

// refusing returns the URL of a server that answers each start of a session with an error.
func refusing(code string) string {
	return fake(func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1024)) // its startup message is shorter
		answer, err := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "not now"}).Encode(nil)
		Expect(err).NotTo(HaveOccurred())
		_, _ = conn.Write(answer)
	})
}

// fake returns the URL of a server that does this with each connection.
func fake(handle func(net.Conn)) string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(l.Close)
	go func() {
		defer GinkgoRecover()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
			handle(conn)
			_ = conn.Close()
		}
	}()
	return "postgres://" + l.Addr().String() + "/x?sslmode=disable"
}

// closedPort returns a port without a listener.
func closedPort() int {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}
