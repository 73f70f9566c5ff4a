package e2e_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// installation is several control planes on one PostgreSQL.
type installation struct {
	database *postgres.Server
	key      string
}

func newInstallation() *installation {
	GinkgoHelper()
	return &installation{startPostgres(), filepath.Join(GinkgoT().TempDir(), "secret.key")}
}

// replica starts a control plane.
func (i *installation) replica(args ...string) *testkit.Gatehouse {
	GinkgoHelper()
	return serve(append([]string{"--database-url", i.database.URL("gatehouse"), "--secret-key-file", i.key, "--access-log", "off"}, args...)...)
}

// exec runs a statement on the database, and count reads a number.
func (i *installation) exec(statement string) {
	GinkgoHelper()
	conn, err := pgx.Connect(limit(), i.database.URL("gatehouse"))
	Expect(err).NotTo(HaveOccurred())
	_, err = conn.Exec(limit(), statement)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close(limit())).To(Succeed())
}

func (i *installation) count(question string) (n int64) {
	GinkgoHelper()
	conn, err := pgx.Connect(limit(), i.database.URL("gatehouse"))
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.QueryRow(limit(), question).Scan(&n)).To(Succeed())
	Expect(conn.Close(limit())).To(Succeed())
	return n
}

// silence makes a killed replica silent for some seconds.
func (i *installation) silence(name string, seconds int) {
	GinkgoHelper()
	i.exec(fmt.Sprintf("UPDATE replica_report SET heard = clock_timestamp() - interval '%d s' WHERE replica = '%s'", seconds, name))
}

// nameOf returns the name of a replica.
func nameOf(g *testkit.Gatehouse) string {
	GinkgoHelper()
	var s struct{ Replica string }
	only(g.API, "/status", &s)
	return s.Replica
}

// envoysOf lists the Envoys of gw that a replica knows, as state, or as replica: state
// if they are another replica's.
func envoysOf(g *testkit.Gatehouse) func() []string {
	return func() []string {
		GinkgoHelper()
		var s struct {
			Proxies []struct {
				Envoys []struct{ Replica, State string }
			}
		}
		only(g.API, "/proxy/gw/status", &s)
		list := []string{}
		for _, e := range s.Proxies[0].Envoys {
			if e.Replica != "" {
				e.State = e.Replica + ": " + e.State
			}
			list = append(list, e.State)
		}
		slices.Sort(list)
		return list
	}
}

// othersOf lists the other replicas that one knows.
func othersOf(g *testkit.Gatehouse) func() []string {
	return func() []string {
		GinkgoHelper()
		var s struct {
			Replicas []struct{ Replica, State string }
		}
		only(g.API, "/status", &s)
		list := []string{}
		for _, r := range s.Replicas {
			list = append(list, r.Replica+": "+r.State)
		}
		return list
	}
}

// lag is a lagging Envoy in the answer to a write with a wait.
type lag struct{ Proxy, Envoy, Replica, Reason, Message string }

// lagging makes a write that waits, and returns what lags.
func lagging(api testkit.API, path, timeout string, fields ...string) []lag {
	GinkgoHelper()
	a, err := api.Do(limit(), http.MethodPatch, path+"?wait=applied&timeout="+timeout, "application/x-www-form-urlencoded", strings.Join(fields, "&"))
	Expect(err).NotTo(HaveOccurred())
	var body struct{ Data struct{ Lagging []lag } }
	Expect(json.Unmarshal([]byte(a.Body), &body)).To(Succeed())
	if len(body.Data.Lagging) > 0 {
		Expect(a.Status).To(Equal(http.StatusAccepted), a.Body)
	} else {
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	}
	return body.Data.Lagging
}

// crossing is an address that forwards to another one, which can be changed:
// connections then break, as behind a load balancer.
type crossing struct {
	addr string
	mu   sync.Mutex
	to   string
	open []net.Conn
}

func newCrossing(to string) *crossing {
	GinkgoHelper()
	l, err := new(net.ListenConfig).Listen(limit(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	c := &crossing{addr: l.Addr().String(), to: to}
	var group sync.WaitGroup
	pipe := func(from, to net.Conn) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err == nil {
				_, err = to.Write(buffer[:n])
			}
			if err != nil {
				_, _ = from.Close(), to.Close()
				return
			}
		}
	}
	group.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			far, err := new(net.Dialer).Dial("tcp", c.to)
			if err != nil {
				_ = near.Close()
			} else {
				c.open = append(c.open, near, far)
				group.Go(func() { pipe(near, far) })
				group.Go(func() { pipe(far, near) })
			}
			c.mu.Unlock()
		}
	})
	DeferCleanup(func() {
		_ = l.Close()
		c.turn("")
		group.Wait()
	})
	return c
}

// turn forwards to another address from now on.
func (c *crossing) turn(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = to
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

var _ = Describe("Two control planes on one PostgreSQL", func() {
	// pair starts two replicas with an Envoy of gw at each.
	pair := func() (i *installation, a, b *testkit.Gatehouse, envoyOfB *testkit.Envoy) {
		GinkgoHelper()
		i = newInstallation()
		a, b = i.replica(), i.replica()
		addUpstream(a.API, backend("blue"))
		addService(a.API, "shop", "shop.example", "blue")
		addProxy(a.API, "gw", freePort(), "shop")
		envoyFor("gw", a.XDSAddr)
		envoyOfB = envoyFor("gw", b.XDSAddr)
		Eventually(envoysOf(a)).Should(ConsistOf("current", nameOf(b)+": current"))
		Eventually(envoysOf(b)).Should(ConsistOf("current", nameOf(a)+": current"))
		return i, a, b, envoyOfB
	}

	It("know each other's Envoys: in the status, of objects, in explain and in the events", func() {
		_, a, b, envoyOfB := pair()
		Expect(othersOf(a)()).To(Equal([]string{nameOf(b) + ": heard"}))
		Expect(holding(a.API, "/service/shop")).To(ContainElement("Programmed"))
		var explained struct {
			Basis     string
			Elsewhere []struct {
				Replica string
				Current int
				Lagging []lag
			}
		}
		only(a.API, "/proxy/gw/explain?url=http://shop.example/", &explained)
		Expect(explained.Basis).To(Equal("envoys"))
		Expect(explained.Elsewhere).To(HaveLen(1))
		Expect(explained.Elsewhere[0].Replica).To(Equal(nameOf(b)))
		Expect(explained.Elsewhere[0].Current).To(Equal(1))

		By("and what an Envoy refuses, whichever one is called")
		told, _ := eventsOf(a.API)
		post(a.API, "/service", "Service_Name=taken", "fqdn=taken.example")
		client, err := testkit.DialXDS(b.XDSAddr, "gw", func(r *testkit.XDSResponse) { _ = r.Nack("not to my taste") })
		Expect(err).NotTo(HaveOccurred())
		Expect(client.Subscribe("type.googleapis.com/envoy.config.cluster.v3.Cluster")).To(Succeed())
		Eventually(envoysOf(a)).Should(ConsistOf("current", nameOf(b)+": current", nameOf(b)+": refused"))
		only(a.API, "/proxy/gw/explain?url=http://shop.example/", &explained)
		Expect(explained.Elsewhere[0].Lagging).To(ConsistOf(And(HaveField("Reason", "refused"), HaveField("Message", ContainSubstring("not to my taste")))))
		Expect(holding(a.API, "/service/shop/route/root")).NotTo(BeEmpty())
		Expect(holding(a.API, "/upstream/blue")).To(And(ContainElement("Rejected"), Not(ContainElement("Programmed"))))
		Expect(client.Close()).To(Succeed())
		Expect(envoyOfB.Kill()).To(Succeed())
		Eventually(envoysOf(a)).Should(ConsistOf("current"))
		Expect(read(a.API, "/metrics")).To(ContainSubstring(`gatehouse_envoys{proxy="gw"} 1`), "metrics are of one replica")
		for _, want := range []struct {
			event string
			times int
		}{{"connect", 1}, {"nack", 1}, {"disconnect", 2}} {
			Eventually(func() int { return strings.Count(told(), fmt.Sprintf(`{"event":%q,`, want.event)) }).Should(Equal(want.times), func() string { return want.event + " in " + told() })
		}
		Expect(told()).To(ContainSubstring(fmt.Sprintf(`"replica":%q`, nameOf(b))))
	})

	It("wait for each other's Envoys, and say which one lags", func() {
		_, a, b, envoyOfB := pair()
		Expect(lagging(a.API, "/upstream/blue", "20s", "Upstream_weight=2")).To(BeEmpty())
		Expect(lagging(b.API, "/upstream/blue", "20s", "Upstream_weight=3")).To(BeEmpty())
		Expect(envoyOfB.Freeze()).To(Succeed())
		lags := lagging(a.API, "/service/shop/route/root", "3s", "Route_prefix=/a")
		Expect(lags).To(HaveLen(1))
		Expect(lags[0]).To(And(HaveField("Proxy", "gw"), HaveField("Replica", nameOf(b)), HaveField("Reason", "slow"), HaveField("Envoy", HavePrefix("127.0.0.1:"))))
		Expect(holding(a.API, "/service/shop/route/root")).NotTo(ContainElement("Programmed"))
		Eventually(envoysOf(a)).Should(ConsistOf("current", nameOf(b)+": slow"))

		By("until it continues")
		Expect(envoyOfB.Thaw()).To(Succeed())
		Expect(lagging(a.API, "/service/shop/route/root", "20s", "Route_prefix=/b")).To(BeEmpty())
		Eventually(func() []string { return holding(a.API, "/service/shop/route/root") }).Should(ContainElement("Programmed"))

		By("without waiting if no Envoy is affected, or connected anywhere")
		post(a.API, "/upstream", "Upstream_name=alone", "Upstream_ip=127.0.0.1", "Upstream_port=1")
		Expect(lagging(a.API, "/upstream/alone", "20s", "Upstream_port=2")).To(BeEmpty())
		addProxy(a.API, "empty", freePort())
		Expect(lagging(a.API, "/proxy/empty", "20s", "Http_port="+strconv.Itoa(freePort()))).To(Equal([]lag{
			{Proxy: "empty", Reason: "not_connected", Message: `no Envoy whose node id is "empty" is connected`},
		}))
	})

	It("report that they do not know what the Envoys of a killed one have, until these are elsewhere", func() {
		i := newInstallation()
		a, b := i.replica(), i.replica()
		addUpstream(a.API, backend("blue"))
		addService(a.API, "shop", "shop.example", "blue")
		addProxy(a.API, "gw", freePort(), "shop")
		envoyFor("gw", b.XDSAddr)
		Eventually(envoysOf(a)).Should(ConsistOf(nameOf(b) + ": current"))
		name, weight := nameOf(b), 1
		change := func(timeout string) []lag {
			weight++ // a write without a change does not wait
			return lagging(a.API, "/upstream/blue", timeout, fmt.Sprintf("Upstream_weight=%d", weight))
		}
		Expect(b.Kill()).To(Succeed())
		Expect(change("1s")).To(ContainElement(And(HaveField("Replica", name), HaveField("Reason", "slow"))))
		Eventually(othersOf(a)).Should(Equal([]string{name + ": unheard"}))
		Expect(envoysOf(a)()).To(ConsistOf(name + ": unheard"))
		Expect(change("20s")).To(ContainElement(And(
			HaveField("Replica", name), HaveField("Reason", "unheard"), HaveField("Message", ContainSubstring("the state of its Envoys is unknown")))))
		Expect(holding(a.API, "/upstream/blue")).NotTo(ContainElement("Programmed"))
		i.silence(name, 70)
		Eventually(func() []lag { return change("20s") }).Should(ContainElement(And(
			HaveField("Reason", "unheard"), HaveField("Message", ContainSubstring("not all of its Envoys have connected elsewhere since")))))
		Expect(holding(a.API, "/upstream/blue")).NotTo(ContainElement("Programmed"))

		By("one connects from the same host")
		envoyFor("gw", a.XDSAddr)
		Eventually(othersOf(a)).Should(BeEmpty())
		Eventually(envoysOf(a)).Should(ConsistOf("current"))
		Expect(change("20s")).To(BeEmpty())
		Expect(holding(a.API, "/upstream/blue")).To(ContainElement("Programmed"))
		Expect(i.count("SELECT count(*) FROM replica_report WHERE NOT ended")).To(Equal(int64(1)))
	})

	It("know at once that the Envoys of a killed one are elsewhere, if these say who they are", func() {
		i, xds := newInstallation(), fmt.Sprintf("127.0.0.1:%d", freePort())
		g := i.replica("--xds-addr", xds)
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		addProxy(g.API, "gw", freePort(), "shop")
		run := func(command string, args ...string) {
			GinkgoHelper()
			dir := GinkgoT().TempDir()
			socket := filepath.Join(dir, "admin.sock")
			if command == "bootstrap" {
				bootstrap, err := testkit.PrintBootstrap(limit(), "gw", xds, append(args, "--admin-socket", socket)...)
				Expect(err).NotTo(HaveOccurred())
				e, err := testkit.RunEnvoy(limit(), dir, bootstrap)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(e.Kill)
				return
			}
			e, err := testkit.SpawnGatehouse(nil, append([]string{command, "--proxy", "gw", "--xds-addr", xds, "--admin-socket", socket}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(e.Kill)
		}
		run("bootstrap", "--instance", "first")
		run("envoy") // makes a name for itself
		Eventually(envoysOf(g)).Should(ConsistOf("current", "current"))
		// What it has not reported when it is killed, nobody knows.
		killed, witness := nameOf(g), i.replica()
		Eventually(envoysOf(witness)).Should(Equal([]string{killed + ": current", killed + ": current"}))
		Expect(witness.Stop(limit())).To(BeZero())
		Expect(g.Kill()).To(Succeed())

		g = i.replica("--xds-addr", xds)
		Eventually(envoysOf(g)).Should(Equal([]string{"current", "current"}))
		began := time.Now()
		Expect(lagging(g.API, "/upstream/blue", "20s", "Upstream_weight=2")).To(BeEmpty())
		Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second), "it would be unheard for a minute")
		Expect(lagging(g.API, "/upstream/blue", "20s", "Upstream_weight=3")).To(BeEmpty())
		Expect(holding(g.API, "/upstream/blue")).To(ContainElement("Programmed"))
		Expect(othersOf(g)()).To(Equal([]string{killed + ": unheard"}))
	})

	It("forget one that stops immediately", func() {
		_, a, b, _ := pair()
		_, err := b.Stop(limit())
		Expect(err).NotTo(HaveOccurred())
		Eventually(othersOf(a)).WithTimeout(4 * 1e9).Should(BeEmpty())
		Expect(lagging(a.API, "/upstream/blue", "20s", "Upstream_weight=2")).To(BeEmpty())
	})

	It("never count an Envoy twice that moves from one to the other", func() {
		i := newInstallation()
		a, b := i.replica(), i.replica()
		addProxy(a.API, "gw", freePort())
		way := newCrossing(b.XDSAddr)
		envoyFor("gw", way.addr)
		Eventually(envoysOf(a)).Should(ConsistOf(nameOf(b) + ": current"))
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		most := make(chan int, 1)
		go func() {
			defer GinkgoRecover()
			n := 0
			defer func() { most <- n }() // also if a call fails
			for ctx.Err() == nil {
				n = max(n, len(envoysOf(a)()))
			}
		}()
		way.turn(a.XDSAddr)
		Eventually(envoysOf(a)).Should(ConsistOf("current"))
		way.turn(b.XDSAddr)
		Eventually(envoysOf(a)).Should(ConsistOf(nameOf(b) + ": current"))

		By("nor when that one is killed")
		Expect(b.Kill()).To(Succeed())
		way.turn(a.XDSAddr)
		Eventually(envoysOf(a)).Should(ConsistOf("current"))
		stop()
		Expect(<-most).To(Equal(1))
	})

	It("do not wait for the return of an Envoy that has moved", func() {
		i := newInstallation()
		a, b := i.replica(), i.replica()
		addUpstream(a.API, backend("blue"))
		addService(a.API, "shop", "shop.example", "blue")
		addProxy(a.API, "gw", freePort(), "shop")
		way := newCrossing(b.XDSAddr)
		envoyFor("gw", way.addr)
		Eventually(envoysOf(a)).Should(ConsistOf(nameOf(b) + ": current"))
		way.turn(a.XDSAddr)
		Eventually(envoysOf(b)).Should(ConsistOf(nameOf(a) + ": current"))
		began := time.Now()
		Expect(lagging(a.API, "/upstream/blue", "20s", "Upstream_weight=2")).To(BeEmpty())
		Expect(time.Since(began)).To(BeNumerically("<", 4*time.Second), "it would wait for 5 s")
	})

	It("know each other after a crash of the database, which keeps none of it", func() {
		i, a, b, _ := pair()
		Expect(i.database.Crash(limit())).To(Succeed())
		for _, g := range []*testkit.Gatehouse{a, b} {
			Eventually(func() int {
				answer, err := g.API.Get(limit(), "/status")
				Expect(err).NotTo(HaveOccurred())
				return answer.Status
			}).Should(Equal(http.StatusOK))
		}
		Eventually(func() int64 { return i.count("SELECT count(*) FROM replica_report") }).Should(Equal(int64(2)))
		Eventually(envoysOf(a)).Should(ConsistOf("current", nameOf(b)+": current"))
		Expect(lagging(a.API, "/upstream/blue", "20s", "Upstream_weight=2")).To(BeEmpty())
	})

	It("work equally with a third one, which comes and goes", func() {
		i, a, b, _ := pair()
		c := i.replica()
		envoyFor("gw", c.XDSAddr)
		for _, g := range []*testkit.Gatehouse{a, b, c} {
			Eventually(envoysOf(g)).Should(HaveLen(3))
		}
		Expect(lagging(c.API, "/upstream/blue", "20s", "Upstream_weight=2")).To(BeEmpty())
		_, err := c.Stop(limit())
		Expect(err).NotTo(HaveOccurred())
		Eventually(envoysOf(a)).Should(HaveLen(2))
	})
})

var _ = Describe("One control plane on SQLite", func() {
	It("stores nothing about its Envoys", func() {
		dir := GinkgoT().TempDir()
		g := serve("--data-dir", dir)
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		addProxy(g.API, "gw", freePort(), "shop")
		db, err := sql.Open("sqlite", filepath.Join(dir, "gatehouse.db"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(db.Close)
		conn, err := db.Conn(limit())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		number := func(question string) (n int64) {
			Expect(conn.QueryRowContext(limit(), question).Scan(&n)).To(Succeed())
			return n
		}
		// commits changes with each commit of another connection.
		commits := func() int64 { return number("PRAGMA data_version") }
		before := commits()
		envoyFor("gw", g.XDSAddr)
		for range 5 {
			client, err := testkit.DialXDS(g.XDSAddr, "gw", func(r *testkit.XDSResponse) { _ = r.Ack() })
			Expect(err).NotTo(HaveOccurred())
			Expect(client.Subscribe("type.googleapis.com/envoy.config.cluster.v3.Cluster")).To(Succeed())
			Eventually(envoysOf(g)).Should(HaveLen(2))
			Expect(client.Close()).To(Succeed())
			Eventually(envoysOf(g)).Should(Equal([]string{"current"}))
		}
		Consistently(commits).WithTimeout(6*time.Second).Should(Equal(before), "heartbeats and polls happen every 5 s")
		Expect(number("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%replica%'")).To(BeZero())
		post(g.API, "/upstream", "Upstream_name=green", "Upstream_ip=127.0.0.1", "Upstream_port=1")
		Expect(commits()).NotTo(Equal(before))
	})
})
