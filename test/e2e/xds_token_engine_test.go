package e2e_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// engineAt runs the stock rate-limit engine, with additional settings, until the end of the
// spec.
func engineAt(xdsAddr, redisAddr string, env ...string) *testkit.Ratelimit {
	GinkgoHelper()
	e, err := testkit.SpawnRatelimit(testkit.RatelimitOptions{XDSAddr: xdsAddr, RedisAddr: redisAddr, Env: env})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return e.Kill() })
	return e
}

func engineToken(token string) string {
	return "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=authorization:Bearer " + token
}

// startRedis runs a Redis until the end of the spec.
func startRedis() *testkit.Redis {
	GinkgoHelper()
	r, err := testkit.StartRedis(limit(), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.Kill)
	return r
}

// engines returns how many engines the status lists.
func engines(api testkit.API) int {
	GinkgoHelper()
	return strings.Count(read(api, "/status"), `"state":"current"`)
}

var _ = Describe("The rate-limit engine with a token", func() {
	It("has its limits, keeps them when the token is revoked, and uses no other", func() {
		redis, g := startRedis(), serve()
		post(g.API, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit",
			`config={"domain":"edge","descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":5}}]}`)
		edge, _, token := twoProxies(g.API)
		e := engineAt(g.XDSAddr, redis.Addr, engineToken(token))
		Expect(e.WaitReady(limit())).To(Succeed())
		Eventually(engines).WithArguments(g.API).Should(Equal(1))
		limits := read(e.Debug, "/rlconfig")
		Expect(limits).To(ContainSubstring("remote_address"))
		Expect(refusalsOf(g)).To(BeEmpty())

		By("revoking it")
		remove(g.API, "/ratelimit/token/one")
		Eventually(engines).WithArguments(g.API).Should(BeZero())
		Eventually(refusalsOf).WithArguments(g).Should(ConsistOf("ended", "token"))
		Expect(read(e.Debug, "/rlconfig")).To(Equal(limits))
		Expect(read(e.Health, "/healthcheck")).To(ContainSubstring("OK"))

		By("giving another engine the token of an Envoy")
		other := engineAt(g.XDSAddr, redis.Addr, engineToken(edge))
		Eventually(refusalsOf).WithArguments(g).Should(ConsistOf("ended", "token", "ratelimit"))
		Expect(engines(g.API)).To(BeZero())
		Expect(e.Kill()).To(Succeed())
		Expect(other.Kill()).To(Succeed())

		By("starting it with a new one")
		second := xdsToken(g.API, "/ratelimit/token", "two")
		Expect(engineAt(g.XDSAddr, redis.Addr, engineToken(second)).WaitReady(limit())).To(Succeed())
		Eventually(engines).WithArguments(g.API).Should(Equal(1))
		texts := g.Stderr.String() + e.Stderr.String() + e.Stdout.String() + other.Stderr.String() + other.Stdout.String()
		for _, t := range []string{edge, token, second} {
			Expect(texts).NotTo(ContainSubstring(strings.TrimPrefix(t, "ghx_")))
		}
	})
})
