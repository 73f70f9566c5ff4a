package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// changes is how many changes a spec makes: GATEHOUSE_TEST_CHANGES, or a number that
// suits a run with the other tests.
func changes() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_CHANGES")); err == nil {
		return n
	}
	return 120
}

// slowLink returns an address that forwards to another; the answers are delayed.
func slowLink(to string, delay time.Duration) string {
	GinkgoHelper()
	l, err := new(net.ListenConfig).Listen(limit(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	var group sync.WaitGroup
	pipe := func(from, to net.Conn, delay time.Duration) {
		defer group.Done()
		defer func() { _, _ = from.Close(), to.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			<-time.After(delay)
			if _, err := to.Write(buffer[:n]); err != nil {
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
			far, err := new(net.Dialer).Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			group.Add(2)
			go pipe(near, far, 0)
			go pipe(far, near, delay)
		}
	})
	DeferCleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	return l.Addr().String()
}

// applied makes a write that must be live when it is answered.
func applied(api testkit.API, method, path string, fields ...string) {
	GinkgoHelper()
	body := ""
	for _, f := range fields {
		body += f + "&"
	}
	a, err := api.Do(limit(), method, path+"?wait=applied&timeout=20s", "application/x-www-form-urlencoded", body)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), "%s %s at %s: %s", method, path, time.Now(), a.Body)
}

var _ = Describe("?wait=applied", func() {
	DescribeTable("is answered only when the very next request gets the change", func(envoys int) {
		g := serve()
		gw := gateway{g.API, freePort()}
		one, two := backend("one"), backend("two")
		addUpstream(g.API, one)
		addUpstream(g.API, two)
		post(g.API, "/upstream", "Upstream_name=turn", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(one.Port))
		// A host that never becomes ready must not affect the others.
		hole := holeInTheGround()
		post(g.API, "/upstream", "Upstream_name=hanging", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(hole),
			"Upstream_hc_path=/", "Upstream_hc_timeoutseconds=10", "Upstream_hc_intervalseconds=10")
		addService(g.API, "turning", "turning.example", "turn")
		addService(g.API, "routed", "routed.example", "one")
		addProxy(g.API, "gw", gw.port, "turning", "routed")
		for i := range envoys {
			addr := g.XDSAddr
			if i == 0 && envoys > 1 {
				addr = slowLink(addr, 20*time.Millisecond)
			}
			envoyFor("gw", addr)
		}
		applied(g.API, http.MethodPost, "/service/turning/route", "Route_Name=more", "Route_prefix=/more")

		addService(g.API, "stuck", "stuck.example", "hanging")
		post(g.API, "/proxy/gw/service/stuck")
		total := changes()
		for i := range total {
			// Envoys with the same name share the port, and each request uses its own
			// connection: any of them may receive it.
			switch now := []*testkit.Backend{two, one}[i/4%2]; i % 4 {
			case 0:
				applied(g.API, http.MethodPatch, "/upstream/turn", "Upstream_port="+strconv.Itoa(now.Port))
				Expect(gw.answers("turning.example", "/")).To(Equal(now.Name), "change %d", i)
			case 1:
				path := fmt.Sprintf("/p%d/", i)
				applied(g.API, http.MethodPatch, "/service/routed/route/root", "Route_prefix="+path)
				Expect(gw.answers("routed.example", path)).To(Equal("one"), "change %d", i)
				Expect(gw.answers("routed.example", "/elsewhere")).To(Equal("404"), "change %d", i)
			case 2:
				addService(g.API, "new", "new.example", now.Name)
				applied(g.API, http.MethodPost, "/proxy/gw/service/new")
				Expect(gw.answers("new.example", "/")).To(Equal(now.Name), "change %d", i)
			case 3:
				applied(g.API, http.MethodDelete, "/proxy/gw/service/new")
				Expect(gw.answers("new.example", "/")).To(Equal("404"), "change %d", i)
				remove(g.API, "/service/new")
			}
		}
		Expect(g.Records("envoy refused configuration and keeps what it had")).To(BeEmpty())
		AddReportEntry("wait=applied", fmt.Sprintf("%d of %d changes met by the next request, with %d Envoys", total, total, envoys))
	},
		Entry("with 1 Envoy", 1),
		Entry("with 3 Envoys of one name, one of them slow", 3),
	)
})

var _ = Describe("?wait=applied where no Envoy is connected", func() {
	It("is answered immediately, and says so; the command too", func() {
		g := serve()
		addProxy(g.API, "gw", freePort())
		// limit is a minute; the wait may take ten.
		a, err := g.API.Do(limit(), http.MethodPatch, "/proxy/gw?wait=applied&timeout=10m", "application/json", `{"Trusted_hops":1}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusAccepted), a.Body)
		Expect(a.Body).To(MatchJSON(`{"data":{"update_core_db_proxy":{"affected_rows":1},"lagging":[
			{"proxy":"gw","reason":"not_connected","message":"no Envoy whose node id is \"gw\" is connected"}]}}`))

		c := cliOf(g)
		code, _, stderr := c.run("delete", "proxy", "gw", "--wait", "--wait-timeout", "10m")
		Expect(code).To(BeZero(), "nobody is there to miss it: %s", stderr)
		file := document("version: 1\nproxies:\n- {name: gw}\n")
		code, _, stderr = c.run("apply", "-f", file, "--wait", "--wait-timeout", "10m")
		Expect(code).To(Equal(3), stderr)
		Expect(stderr).To(And(ContainSubstring("the change is stored"), ContainSubstring(`proxy gw: no Envoy whose node id is "gw" is connected (not_connected)`)))
	})

	It("waits for the connected one, and reports the proxy without any", func() {
		g := serve()
		port := freePort()
		one := backend("one")
		addUpstream(g.API, one)
		addService(g.API, "shop", "*", "one")
		addProxy(g.API, "gw", port, "shop")
		addProxy(g.API, "edge", freePort(), "shop")
		envoyFor("gw", g.XDSAddr)
		gateway{g.API, port}.expect("shop.example", "/", "one")
		a, err := g.API.Do(limit(), http.MethodPatch, "/service/shop/route/root?wait=applied&timeout=10m", "application/json", `{"Route_prefix":"/new"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusAccepted), a.Body)
		Expect(a.Body).To(And(ContainSubstring(`{"proxy":"edge","reason":"not_connected"`), Not(ContainSubstring(`"proxy":"gw"`))))
		Expect(gateway{g.API, port}.answers("shop.example", "/new")).To(Equal("one"))
	})

	It("waits for an Envoy that is certain to connect: that of a standalone gateway", func() {
		port := freePort()
		dir := GinkgoT().TempDir()
		g, err := testkit.StartGatehouse(limit(), nil, standaloneArgs(dir, port)...) // its Envoy is about to start
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(g.Kill)
		one := backend("one")
		addUpstream(g.API, one)
		addService(g.API, "shop", "*", "one")
		post(g.API, "/proxy", "Name=gw")
		applied(g.API, http.MethodPost, "/proxy/gw/service/shop")
		Expect(gateway{g.API, port}.answers("shop.example", "/")).To(Equal("one"))
	})
})

// holeInTheGround returns a port that accepts connections and never answers.
func holeInTheGround() int {
	GinkgoHelper()
	l, err := new(net.ListenConfig).Listen(limit(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	var mu sync.Mutex
	var open []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	DeferCleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range open {
			_ = c.Close()
		}
	})
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
}
