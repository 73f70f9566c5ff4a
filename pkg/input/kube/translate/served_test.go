package translate_test

import (
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// served returns what Envoy does with requests, by proxy: HOST PATH -> CLUSTER, 503 or another
// status; behind a login if the host requires one.
func served(steps ...translate.Step) (lines []string) {
	GinkgoHelper()
	s := newState()
	for _, step := range steps {
		s.add(step)
	}
	change := model.Change{Revision: 1, Full: true, Endpoints: s.endpoints}
	for _, kind := range model.Kinds() {
		for key, obj := range s.objects {
			if key.Kind == kind {
				change.Entries = append(change.Entries, model.Entry{Key: key, Object: obj})
			}
		}
	}
	b, err := pipeline.NewBuild(compile.Settings{
		Open: func(text, _ string) (string, error) { return text, nil }, Authorities: pems.authority, RateLimitSocket: "/run/engine.sock",
	})
	Expect(err).NotTo(HaveOccurred())
	for proxy, snapshot := range b.Apply(change).Snapshots {
		routes := &routev3.RouteConfiguration{}
		Expect(snapshot.Routes(snapshot.Hosts).Body.UnmarshalTo(routes)).To(Succeed())
		for _, host := range routes.VirtualHosts {
			for _, r := range host.Routes {
				if line := servedLine(host, r); line != "" {
					lines = append(lines, proxy+" "+line)
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func servedLine(host *routev3.VirtualHost, r *routev3.Route) string {
	if strings.HasPrefix(host.Name, "gatehouse-") || strings.Contains(host.Domains[0], "keeper") {
		return ""
	}
	m := r.Match
	line := host.Domains[0] + " " + m.GetPrefix() + m.GetPath() + m.GetPathSeparatedPrefix() + m.GetSafeRegex().GetRegex() + " -> "
	switch a := r.Action.(type) {
	case *routev3.Route_DirectResponse:
		if a.DirectResponse.Status == 404 {
			return "" // the login answers this itself
		}
		return line + strconv.Itoa(int(a.DirectResponse.Status))
	case *routev3.Route_Redirect:
		return line + "redirect"
	case *routev3.Route_Route:
		line += a.Route.GetCluster()
		for _, c := range a.Route.GetWeightedClusters().GetClusters() {
			line += c.Name + " "
		}
	}
	for name := range host.TypedPerFilterConfig {
		if strings.Contains(name, "oauth2") {
			line += " behind a login"
		}
	}
	return strings.TrimSpace(line)
}

var _ = Describe("The served configuration", func() {
	It("contains a host's routes, behind the login of its proxy", func() {
		c := newCluster(webHost, webService, webSlice)
		first := c.step()
		Expect(served(first)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80"}))
		c.apply(oauth, idpService, oauthSecrets)
		Expect(served(first, c.step())).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80 behind a login"}))
	})
})
