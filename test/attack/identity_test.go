package attack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// identityTry is a filter on a route, and the header with which it says who a client is.
type identityTry struct{ kind, config, header string }

func identityTries(auth *testkit.AuthServer, p *testkit.Processor) (upstreams [][]string, tries []identityTry) {
	jwks := testkit.NewTokenIssuer("https://issuer.test", "one").JWKS()
	upstream := func(name, protocol string, port int) {
		upstreams = append(upstreams, []string{"Upstream_name=" + name, "Upstream_ip=127.0.0.1", "Upstream_protocol=" + protocol, fmt.Sprint("Upstream_port=", port)})
	}
	upstream("auth", "http", auth.HTTP)
	upstream("auth-grpc", "h2c", auth.GRPC)
	upstream("processor", "h2c", p.Port)
	const users = `{"users":[{"name":"ann","password":"correct-horse-battery"}]}`
	return upstreams, []identityTry{
		{"http_filter_jwt", `{"issuer":"https://issuer.test","jwks":` + jwks + `,"claim_headers":[{"claim":"sub","header":"X-Subject"}]}`, "X-Subject"},
		// The keys of this issuer are never known, so its route is closed. The backend still trusts the header.
		{"http_filter_jwt", `{"issuer":"https://late.test","jwks_uri":"https://127.0.0.1:1/keys","claim_headers":[{"claim":"sub","header":"X-Late"}]}`, "X-Late"},
		{"http_filter_extauthz", `{"upstream":"auth","path":"/check","upstream_headers":["X-User"]}`, "X-User"},
		{"http_filter_extauthz", `{"upstream":"auth-grpc","protocol":"grpc","upstream_headers":["x-caller"]}`, "X-Caller"},
		{"http_filter_anyof", `{"apikey":{"keys":"partners"},"jwt":{"issuer":"https://issuer.test","jwks":` + jwks + `,"claim_headers":[{"claim":"sub","header":"x-either"}]}}`, "X-Either"},
		{"http_filter_basicauth", users, "X-Client"},
		{"http_filter_apikey", `{"keys":"partners"}`, "X-Client"},
		{"http_filter_anyof", `{"apikey":{"keys":"partners"},"basicauth":` + users + `}`, "X-Client"},
		{"http_filter_extproc", `{"upstream":"processor","upstream_headers":["x-processed"]}`, "X-Processed"},
		{"http_filter_lua", `{"script":"function envoy_on_request(h) h:headers():add('x-script', 'ann') end","upstream_headers":["x-script"]}`, "X-Script"},
	}
}

var _ = Describe("A header with which a filter on one route says who the client is", func() {
	It("reaches the backend from no client, whatever route of the service it uses", func(ctx SpecContext) {
		auth, err := testkit.StartAuthServer()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(auth.Close)
		p, err := testkit.StartProcessor()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Close)
		t := startTarget(ctx, "--allow-lua")
		t.add(ctx, "/keyset", "Keyset_name=partners")
		upstreams, tries := identityTries(auth, p)
		for _, fields := range upstreams {
			t.add(ctx, "/upstream", fields...)
		}
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", t.port)}
		for i, r := range tries {
			about := r.kind + " with " + r.header
			name := fmt.Sprint("identity", i)
			t.add(ctx, "/filter", "Filter_name="+name, "Filter_type="+r.kind, "Filter_config="+r.config)
			t.addService(ctx, name, name+".test")
			t.add(ctx, "/service/"+name+"/route", "Route_Name=guarded", "Route_prefix=/guarded")
			t.link(ctx, "/service/"+name+"/route/guarded/upstream/blue")
			t.link(ctx, "/service/"+name+"/route/guarded/filter/"+name)
			t.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
			a := try(ctx, base, http.MethodGet, "/x", "", "Host: "+name+".test", r.header+": root", "Authorization: Bearer own", "Cookie: own=1")
			Expect(a.Status).To(Equal(http.StatusOK), about)
			var echo testkit.Echo
			Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed(), about)
			Expect(echo.Headers).NotTo(HaveKey(r.header), about)
			Expect(echo.Headers).To(And(HaveKeyWithValue("Authorization", []string{"Bearer own"}), HaveKeyWithValue("Cookie", []string{"own=1"})), about)

			explained, err := t.API.Get(ctx, "/proxy/gw/explain?url=http://"+name+".test/x&header="+r.header+":root")
			Expect(err).NotTo(HaveOccurred())
			Expect(explained.Body).To(MatchRegexp("removes headers that only the gateway may set: [^\"]*"+"(?i:"+r.header+")"), about)
		}
	}, SpecTimeout(2*time.Minute))
})
