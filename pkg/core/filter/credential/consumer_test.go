package credential_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestCredential(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Credential")
}

// ask is a request as the script sees it. Everything in it is Lua.
type ask struct {
	// found is what the filters for credentials have written, by their names.
	found string
	// host and route are their metadata.
	host, route string
	// tls is the connection; empty means none.
	tls string
}

// handles make what Envoy gives to a script.
const handles = `
local found, host, route, tls = %s, %s, %s, %s
local function metadata(t) return {metadata = function() return {get = function(_, k) return t[k] end} end} end
said = {}
handle = {
  streamInfo = function() return {
    dynamicMetadata = function() return {
      get = function(_, k) return found[k] end,
      set = function(_, namespace, k, v) if namespace == "envoy.filters.http.lua/consumer" then said[k] = v end end,
    } end,
    downstreamSslConnection = function() return tls end,
  } end,
  route = function() return metadata(route) end,
  virtualHost = function() return metadata(host) end,
}`

// run returns what the script notes of a request.
func run(consumers []ir.Consumer, a ask) string {
	GinkgoHelper()
	list, err := credential.ConsumerList(consumers)
	Expect(err).NotTo(HaveOccurred())
	var script luav3.Lua
	Expect(list.GetTypedConfig().UnmarshalTo(&script)).To(Succeed())
	vm := lua.NewState()
	defer vm.Close()
	or := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	Expect(vm.DoString(fmt.Sprintf(handles, or(a.found, "{}"), or(a.host, "{}"), or(a.route, "{}"), or(a.tls, "nil")))).To(Succeed())
	Expect(vm.DoString(script.GetDefaultSourceCode().GetInlineString() + "\nenvoy_on_request(handle)")).To(Succeed())
	said := vm.GetGlobal("said").(*lua.LTable)
	text := ""
	for _, key := range []string{"name", "groups", "none"} {
		if v := said.RawGetString(key); v != lua.LNil {
			text += key + "=" + v.String() + " "
		}
	}
	return text
}

var _ = Describe("The script that finds consumers", func() {
	consumers := credential.Consumers([]*model.Consumer{
		{Name: "ann", Groups: model.Tags{"gold", "staff"}, Credentials: model.ConsumerCredentials{
			Keys: []string{"set/ann"}, Users: []string{"staff/ann"},
			Tokens:       []model.TokenCredential{{Issuer: "https://i.test", Subject: "ann"}, {Issuer: "https://i.test", Claim: "app.id", Value: "7"}},
			Certificates: []model.CertificateCredential{{Subject: "CN=ann"}, {URI: "spiffe://a/ann"}, {DNS: "ann.test"}},
		}},
		{Name: "ben", Credentials: model.ConsumerCredentials{Keys: []string{"set/ben"}, Certificates: []model.CertificateCredential{{DNS: "ben.test"}}}},
		{Name: "one", Credentials: model.ConsumerCredentials{Keys: []string{"set/twice"}}},
		{Name: "two", Credentials: model.ConsumerCredentials{Keys: []string{"set/twice", "set/two"}}},
	})
	const ann, ben, nobody, several = "name=ann groups=gold,staff ", "name=ben ", "none=unknown ", "none=several "
	key := func(name string) string { return `["envoy.filters.http.basic_auth/key"]={username="` + name + `"},` }
	token := func(claims string) string { return `["envoy.filters.http.jwt_authn"]={id_token={` + claims + `}},` }
	tls := func(validated bool, subject, uris, names string) string {
		return fmt.Sprintf(`{peerCertificateValidated=function() return %t end,subjectPeerCertificate=function() return %q end,`+
			`uriSanPeerCertificate=function() return {%s} end,dnsSansPeerCertificate=function() return {%s} end}`, validated, subject, uris, names)
	}
	const verified = "{certificates=true}"

	DescribeTable("finds", func(a ask, want string) { Expect(run(consumers, a)).To(Equal(want)) },
		Entry("nobody without a credential", ask{}, nobody),
		Entry("the holder of a key", ask{found: "{" + key("set/ann") + "}"}, ann),
		Entry("the holder of a key that was optional", ask{found: `{["envoy.filters.http.basic_auth/any_key"]={username="set/ben"}}`}, ben),
		Entry("nobody by a key of two consumers", ask{found: "{" + key("set/twice") + "}"}, nobody),
		Entry("its only holder by another one", ask{found: "{" + key("set/two") + "}"}, "name=two "),
		Entry("nobody by the beginning of a key", ask{found: "{" + key("set/an") + "}"}, nobody),
		Entry("a user of the host's filter", ask{found: `{["envoy.filters.http.basic_auth"]={username="ann"}}`, host: `{users="staff"}`}, ann),
		Entry("a user of the route's filter", ask{found: `{["envoy.filters.http.basic_auth/any"]={username="ann"}}`, host: `{users="x"}`, route: `{users="staff"}`}, ann),
		Entry("nobody by a user of another filter", ask{found: `{["envoy.filters.http.basic_auth"]={username="ann"}}`, host: `{users="staff"}`, route: `{users="x"}`}, nobody),
		Entry("nobody by a key that is called like a user", ask{found: "{" + key("staff/ann") + "}"}, nobody),
		Entry("a subject", ask{found: "{" + token(`iss="https://i.test",sub="ann"`) + "}"}, ann),
		Entry("a claim", ask{found: "{" + token(`iss="https://i.test",app={id="7"}`) + "}"}, ann),
		Entry("nobody by a subject of another issuer", ask{found: "{" + token(`iss="https://j.test",sub="ann"`) + "}"}, nobody),
		Entry("nobody by a claim that is a number", ask{found: "{" + token(`iss="https://i.test",app={id=7}`) + "}"}, nobody),
		Entry("nobody by a claim whose step is a text", ask{found: "{" + token(`iss="https://i.test",app="id"`) + "}"}, nobody),
		Entry("nobody by an issuer that is a list", ask{found: "{" + token(`iss={"https://i.test"},sub="ann"`) + "}"}, nobody),
		Entry("nobody by a value that goes on like the list", ask{found: "{" + token(`iss="https://i.test",sub="ann\001ann\001gold\010"`) + "}"}, nobody),
		Entry("several by credentials of two", ask{found: "{" + key("set/ben") + token(`iss="https://i.test",sub="ann"`) + "}"}, several),
		Entry("one by two of its credentials", ask{found: "{" + key("set/ann") + token(`iss="https://i.test",sub="ann"`) + "}"}, ann),
		Entry("a subject of a certificate", ask{host: verified, tls: tls(true, "CN=ann", "", "")}, ann),
		Entry("a URI of a certificate", ask{host: verified, tls: tls(true, "", `"x","spiffe://a/ann"`, "")}, ann),
		Entry("a DNS name of a certificate", ask{host: verified, tls: tls(true, "", "", `"ben.test"`)}, ben),
		Entry("several by names of two", ask{host: verified, tls: tls(true, "CN=ann", "", `"ben.test","ann.test"`)}, several),
		Entry("nobody by a certificate that is not validated", ask{host: verified, tls: tls(false, "CN=ann", "", "")}, nobody),
		Entry("nobody by a certificate on a host that verifies none", ask{tls: tls(true, "CN=ann", "", "")}, nobody),
	)

	It("finds each of many credentials, and no other", func() {
		rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seeded test
		for _, n := range []int{1, 31, 32, 33, 64, 500} {
			var many []*model.Consumer
			for i := range n {
				many = append(many, &model.Consumer{
					Name: fmt.Sprint("c", i), Credentials: model.ConsumerCredentials{Keys: []string{fmt.Sprintf("s/%x", rng.Uint64()>>(i%50))}},
				})
			}
			list := credential.Consumers(many)
			for i := 0; i < n; i += max(1, n/20) {
				Expect(run(list, ask{found: "{" + key(many[i].Credentials.Keys[0]) + "}"})).To(Equal(fmt.Sprintf("name=c%d ", i)))
			}
			for _, absent := range []string{"s/", "a/a", "zz/z", "s/zzz"} {
				Expect(run(list, ask{found: "{" + key(absent) + "}"})).To(Equal(nobody))
			}
		}
	})
})
