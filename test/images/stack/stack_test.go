//go:build images

package stack_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// profiles are all profiles.
const profiles = "PROFILES=oidc observe"

const formType = "application/x-www-form-urlencoded"

var _ = Describe("the local stack", Ordered, func() {
	var s *stack

	BeforeAll(func() {
		s = newStack()
		DeferCleanup(func() {
			if CurrentSpecReport().Failed() {
				for service, id := range s.containers(bound(time.Minute)) {
					GinkgoWriter.Println(service, docker(bound(time.Minute), "logs", "--tail", "30", id))
				}
			}
			s.make(bound(5*time.Minute), "down", "ARGS=--volumes")
		})
		out := s.make(bound(20*time.Minute), "up", profiles)
		Expect(out).To(And(
			ContainSubstring("curl -sS http://"+s.edge+"/greeting"),
			ContainSubstring("curl -sS http://"+s.inner+"/greeting"),
			ContainSubstring("curl -sS -H @"+s.dir+"/secrets/api-header http://"+s.api+"/status"),
		))
	})

	It("routes through both Envoys to both backends", func() {
		for _, addr := range []string{s.edge, s.inner} {
			names := map[string]int{}
			for range 20 {
				a := get(bound(10*time.Second), "http://"+addr+"/greeting")
				Expect(a.status).To(Equal(200), a.body)
				first, _, _ := strings.Cut(a.body, "\n")
				names[first]++
			}
			Expect(slices.Sorted(maps.Keys(names))).To(Equal([]string{"hello from blue: GET /greeting", "hello from green: GET /greeting"}))
		}
	})

	It("limits secrets to files that only their owner can read", func() {
		for path, mode := range map[string]os.FileMode{s.settings: 0o600, s.dir: 0o700} {
			info, err := os.Stat(path)
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(mode), path)
		}
		secrets := []string{s.token(), s.setting("POSTGRES_PASSWORD"), s.setting("DEX_DATABASE_PASSWORD"), s.setting("LOGIN_PASSWORD"), s.setting("LOGIN_CLIENT_SECRET"), s.setting("LOGIN_COOKIE_SECRET")}
		for _, secret := range secrets {
			Expect(len(secret)).To(BeNumerically(">", 40))
		}
		for service, id := range s.containers(bound(10 * time.Second)) {
			known := docker(bound(10*time.Second), "inspect", id)
			for _, secret := range secrets {
				Expect(known).NotTo(ContainSubstring(secret), service)
			}
			Expect(known).NotTo(ContainSubstring("INSECURE"), service)
		}
	})

	It("runs every container without privileges, and publishes only on the loopback", func() {
		published := map[string][]string{}
		for service, id := range s.containers(bound(10 * time.Second)) {
			var all []inspected
			Expect(json.Unmarshal([]byte(docker(bound(10*time.Second), "inspect", id)), &all)).To(Succeed())
			c := all[0]
			Expect(c.HostConfig.ReadonlyRootfs).To(BeTrue(), service)
			Expect(c.HostConfig.CapDrop).To(Equal([]string{"ALL"}), service)
			Expect(c.HostConfig.SecurityOpt).To(ContainElement("no-new-privileges:true"), service)
			Expect(c.Config.User).To(MatchRegexp(`^[1-9]|^nobody`), service)
			Expect(c.HostConfig.LogConfig.Config).To(HaveKey("max-size"), service)
			Expect(c.HostConfig.Memory).To(BeNumerically(">", 0), service)
			Expect(c.HostConfig.PidsLimit).To(Equal(int64(1000)), service)
			Expect(c.Config.Image).To(MatchRegexp(`^gatehouse(-[a-z-]+)?:local$`), "no public name for what was built here")
			if service == "edge" || service == "inner" {
				Expect(c.Config.Env).To(ContainElements("GATEHOUSE_DRAIN_TIME=5s", "GATEHOUSE_ADMIN_ADDR=0.0.0.0:9001"), "both work together")
			}
			Expect(c.State.Health.Status).To(Equal("healthy"), service)
			for port, to := range c.HostConfig.PortBindings {
				for _, b := range to {
					Expect(b.HostIP).To(Equal("127.0.0.1"), service)
				}
				published[service] = append(published[service], port)
			}
		}
		Expect(published).To(HaveLen(5))
		Expect(published).To(HaveKeyWithValue("gatehouse", []string{"1323/tcp"}))
		Expect(published).To(HaveKeyWithValue("edge", ConsistOf("8080/tcp", "8443/tcp", "8443/udp")))
		Expect(published).To(HaveKeyWithValue("inner", []string{"8080/tcp"}))
		Expect(published).To(HaveKeyWithValue("dex", []string{s.ports["LOGIN"] + "/tcp"}))
		Expect(published).To(HaveKeyWithValue("prometheus", []string{"9090/tcp"}))
	})

	It("answers no call of the API without the token", func() {
		Expect(get(bound(10*time.Second), "http://"+s.api+"/service").status).To(Equal(401))
		Expect(s.call(bound(10*time.Second), http.MethodGet, "/service", "", "").status).To(Equal(200))
	})

	It("limits both Envoys together, exactly", func() {
		s.limit("together", 20)
		passed, refused := 0, 0
		for range 15 {
			for _, addr := range []string{s.edge, s.inner} {
				switch a := get(bound(10*time.Second), "http://"+addr+"/together"); a.status {
				case 200:
					passed++
				case 429:
					refused++
				default:
					Fail(a.body)
				}
			}
		}
		Expect([]int{passed, refused}).To(Equal([]int{20, 10}))
	})

	It("enforces limits that last longer than a test", func() { s.useUp() })

	It("requires a login at the provider (PROFILES=oidc)", func() {
		Eventually(s.logIn).Should(Succeed())
	})

	It("has the metrics of all components in Prometheus (PROFILES=observe)", func() {
		Eventually(s.targets).Should(Equal(map[string]string{
			"gatehouse:1323": "up", "edge:9001": "up", "inner:9001": "up", "ratelimit:18004": "up", "127.0.0.1:9090": "up",
		}))
		Eventually(func() string { return s.sample("sum(gatehouse_envoys)") }).Should(Equal("2"))
		// Prometheus has the alerts.
		Eventually(func() string { return s.sample("sum(prometheus_rule_group_rules)") }).Should(Equal("18"))
	})

	It("uses renewed certificates, and restarts only what must be restarted", func() {
		started := func(service string) string {
			return docker(bound(time.Minute), "inspect", "--format", "{{.State.StartedAt}}", s.containers(bound(time.Minute))[service])
		}
		before := map[string]string{}
		for _, service := range []string{"gatehouse", "edge", "inner", "ratelimit", "redis"} {
			before[service] = started(service)
		}
		for _, certificate := range []string{"server.crt", "edge.crt", "inner.crt", "ratelimit.crt"} {
			renew := exec.CommandContext(bound(time.Minute), root+"/bin/gatehouse", "pki", "renew", s.dir+"/pki/xds", certificate)
			out, err := renew.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
		s.make(bound(5*time.Minute), "up", profiles)
		for service, at := range before {
			if service == "ratelimit" {
				Expect(started(service)).NotTo(Equal(at), service)
			} else {
				Expect(started(service)).To(Equal(at), service)
			}
		}
		s.awaitRight("renewal")
	})

	It("survives the death of each container", func() { s.killEach() })

	It("is gone after make down, except for the volumes, and has everything after make up", func() {
		before := s.call(bound(10*time.Second), http.MethodGet, "/config", "", "")
		Expect(before.status).To(Equal(200))
		s.make(bound(2*time.Minute), "down")
		left := func(args ...string) []string {
			return strings.Fields(docker(bound(10*time.Second), append(args, "--quiet", "--filter", "label=com.docker.compose.project="+s.name)...))
		}
		Expect(left("ps", "--all")).To(BeEmpty())
		Expect(left("network", "ls")).To(BeEmpty())
		Expect(left("volume", "ls")).To(ConsistOf(s.name+"_postgres", s.name+"_redis", s.name+"_gatehouse", s.name+"_prometheus"))

		// Without a profile: Envoy's admin endpoint is a socket.
		s.make(bound(5*time.Minute), "up")
		Expect(s.call(bound(10*time.Second), http.MethodGet, "/config", "", "").body).To(Equal(before.body))
		for _, addr := range []string{s.edge, s.inner} {
			Expect(get(bound(10*time.Second), "http://"+addr+"/greeting").status).To(Equal(200))
			s.awaitKept(addr)
		}
	})
})

// inspected is a part of the output of docker inspect.
type inspected struct {
	State struct {
		Health struct{ Status string }
	}
	Config struct {
		User, Image string
		Env         []string
	}
	HostConfig struct {
		ReadonlyRootfs       bool
		Memory, PidsLimit    int64
		CapDrop, SecurityOpt []string
		LogConfig            struct{ Config map[string]string }
		PortBindings         map[string][]struct {
			HostIP string `json:"HostIp"`
		}
	}
}

// setting returns a value of the file that make up wrote.
func (s *stack) setting(name string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Clean(s.settings))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	Fail("no " + name + " in " + s.settings)
	return ""
}

// limit creates a route /NAME that allows n requests a year, in both Envoys together:
// no window ends while the specs run.
func (s *stack) limit(name string, n int) {
	GinkgoHelper()
	config, err := json.Marshal(map[string]any{"per": "all", "limit": itoa(n) + "/year"})
	Expect(err).NotTo(HaveOccurred())
	for _, c := range [][2]string{
		{"/filter", form("Filter_name=%s&Filter_type=route_filter_ratelimit&Filter_config=%s", name, escape(string(config)))},
		{"/service/web/route", form("Route_Name=%s&Route_prefix=/%s", name, name)},
		{"/service/web/route/" + name + "/upstream/blue", ""},
		{"/service/web/route/" + name + "/upstream/green", ""},
		{"/service/web/route/" + name + "/filter/" + name + "?wait=applied", ""},
	} {
		a := s.call(bound(30*time.Second), http.MethodPost, c[0], formType, c[1])
		Expect(a.status).To(BeElementOf(200, 201), "%s: %s", c[0], a.body)
	}
}
