package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ = DescribeTable("No token of the xDS port can be read anywhere", func(onPostgres bool) {
	s, base, temp, dump := searched(onPostgres, "--access-log", "json")
	g := s.Gatehouse
	_, stopEvents := eventsOf(g.API)
	addService(g.API, "shop", "*", "blue")
	port := freePort()
	addProxy(g.API, "edge", port, "shop")
	c := cliOf(g)

	By("creating, using and revoking them in all ways, including ways that are refused")
	edge, engine := xdsToken(g.API, "/proxy/edge/token", "one"), xdsToken(g.API, "/ratelimit/token", "one")
	byCommand, revoked := strings.TrimSpace(c.good("token", "create", "two", "--proxy", "edge")), xdsToken(g.API, "/proxy/edge/token", "three")
	tokens := []string{edge, engine, byCommand, revoked}
	for _, token := range tokens {
		Expect(store.IsProxyToken(token)).To(BeTrue())
	}
	places := map[string]string{}
	a, err := g.API.Post(limit(), "/proxy/edge/token", "Token_name=one")
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusConflict))
	places["a name that is taken"] = a.Body
	e, err := envoyWithToken("edge", g.XDSAddr, edge, "--admin-addr", "127.0.0.1:0", "--admin-socket", "")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	gateway{g.API, port}.expect("shop.test", "/", "blue")
	p := xdsPort{addr: g.XDSAddr}
	remove(g.API, "/proxy/edge/token/three")
	for i, token := range tokens {
		for _, call := range []string{deltaADS, loads, sotwADS, fetch} {
			for _, node := range []string{"gw", "edge", "ratelimit"} {
				if err := p.ask(call, node, bearer(token)...); err != nil {
					places[fmt.Sprint("error of ", call, " as ", node, " with ", i)] = err.Error()
				}
			}
		}
	}
	Expect(len(places)).To(BeNumerically(">", 30))
	a, err = g.API.Get(limit(), "/service?"+edge+"=1")
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusBadRequest))

	By("reading everything")
	maps.Copy(places, answersOf(g.API, append(readsOf(g.API, map[string][]string{
		"upstream": {"blue"}, "service": {"shop"}, "route": {"root"}, "proxy": {"gw", "edge"}, "filter": {"x"}, "globalconfig": {"x"},
		"secret": {"x"}, "token": {"one", "two", "three"}, "asset": {"x"}, "revision": revisionsOf(g.API),
	}), "/metrics", "/proxy?status=true")))
	Expect(places["GET /proxy/edge/token as application/json"]).To(MatchRegexp(`"name":"one",.*"name":"two"`))
	for _, args := range [][]string{{"token", "list", "--proxy", "edge"}, {"token", "list", "--ratelimit", "-o", "json"}, {"dump"}, {"status"}, {"history"}} {
		places["gatehouse "+strings.Join(args, " ")] = c.good(args...)
	}
	maps.Copy(places, adminTexts("admin socket", adminOf(g)))
	maps.Copy(places, adminTexts("admin port", g.Admin))
	maps.Copy(places, adminTexts("admin port of the Envoy with a token", e.Admin))
	maps.Copy(places, processTexts(g))
	kept := filesIn(base)
	maps.Copy(kept, filesIn(temp))
	maps.Copy(kept, dump())
	places["events"] = stopEvents()
	Expect(g.Stop(limit())).To(BeZero())
	for place, text := range filesIn(base) {
		kept[place+" at the end"] = text
	}
	places["log"], places["access log"] = g.Stderr.String(), g.Stdout.String()
	places["log of the Envoy"] = e.Stderr.String() + e.Stdout.String()
	Expect(places["log"]).To(And(ContainSubstring(`"level":"DEBUG"`), ContainSubstring("xds client refused")))

	var texts, hashes []string
	for _, token := range tokens {
		texts = append(texts, encodings(strings.TrimPrefix(token, "ghx_"))...)
		hashes = append(hashes, fmt.Sprintf("%x", store.HashToken(token)))
	}
	AddReportEntry("searched", strconv.Itoa(len(places)+len(kept))+" places")
	Expect(leaks(places, append(texts, hashes...))).To(BeEmpty())
	Expect(leaks(kept, texts)).To(BeEmpty())
	Expect(leaks(kept, hashes[:1])).NotTo(BeEmpty(), "the search finds what is stored")
},
	Entry("with SQLite", false),
	Entry("with Postgres", true),
)
