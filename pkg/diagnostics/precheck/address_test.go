package precheck_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// at is an upstream at an address.
func at(name, ip string, port int) *model.Upstream {
	u := upstream(name, "")
	u.IP, u.Port = ip, port
	return u
}

// ruled stores objects, runs a change under rules, and rolls both back.
func ruled(rules precheck.Rules, stored []model.Object, c func(store.Writer) error) (warnings []string, reads int, err error) {
	GinkgoHelper()
	givenUp := errors.New("given up")
	_, failed := db.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) error {
		if err := insert(stored...)(w); err != nil {
			return err
		}
		before := w.Count().Total()
		if err := c(w); err != nil {
			return err
		}
		counted := &counter{Reader: w}
		if err = rules.Check(counted, behind(w, before)); err == nil {
			reads = counted.reads
			warnings, err = rules.Warnings(w, behind(w, before))
		}
		return givenUp
	})
	Expect(failed).To(BeIdenticalTo(givenUp))
	return warnings, reads, err
}

var _ = Describe("The address of an upstream", func() {
	rules := func(open bool) precheck.Rules {
		return precheck.Rules{
			Machine:      egress.Machine{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.7")}},
			OwnAddresses: []egress.OwnAddress{{What: "the API", Addr: netip.MustParseAddrPort("127.0.0.1:1323")}},
			Open:         func() (bool, error) { return open, nil },
		}
	}
	const circle = ": requests may loop, or reach what only this machine should reach"

	DescribeTable("may be the gateway's own",
		func(ip string, port int, to string) {
			stored := []model.Object{proxy("0.0.0.0", 8080)}
			_, _, err := ruled(rules(true), stored, insert(at("u", ip, port)))
			warnings, _, ok := ruled(rules(false), stored, insert(at("u", ip, port)))
			Expect(ok).NotTo(HaveOccurred())
			if to == "" {
				Expect(err).NotTo(HaveOccurred())
				Expect(warnings).To(BeEmpty())
				return
			}
			Expect(model.IsKind(err, model.Unworkable)).To(BeTrue())
			Expect(err).To(MatchError(ContainSubstring("/upstream/u leads to " + to)))
			Expect(warnings).To(Equal([]string{"/upstream/u leads to " + to + circle}))
		},
		Entry(nil, "127.0.0.1", 1323, "the API, at 127.0.0.1:1323"),
		Entry(nil, "::1", 1323, "the API, at [::1]:1323"),
		Entry(nil, "localhost", 8080, "the listener of proxy gw, at localhost:8080"),
		Entry(nil, "192.0.2.7", 8443, "the listener of proxy gw, at 192.0.2.7:8443"),
		Entry("another port", "127.0.0.1", 8081, ""),
		Entry("another machine", "192.0.2.8", 8080, ""),
		Entry("another address of this machine", "192.0.2.7", 1323, ""),
		Entry("a name", "example.com", 1323, ""),
	)

	DescribeTable("may be an identity provider's, even without an upstream", func(login model.Object, path string) {
		cookies := &model.Secret{Name: "cookies", Value: "0123456789abcdef0123456789abcdef"}
		_, _, err := ruled(rules(true), []model.Object{cookies}, insert(login))
		Expect(err).To(MatchError(ContainSubstring(path + " leads to the API, at 127.0.0.1:1323, and the API needs no token")))
		warnings, _, err := ruled(rules(false), []model.Object{cookies}, insert(login))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ContainElement(path + " leads to the API, at 127.0.0.1:1323" + circle))
		deny, err := egress.ParseEntry("127.0.0.0/8")
		Expect(err).NotTo(HaveOccurred())
		denied := rules(false)
		denied.Upstreams.Deny = []egress.Entry{deny}
		_, _, err = ruled(denied, []model.Object{cookies}, insert(login))
		Expect(err).To(MatchError(ContainSubstring(path + " cannot be used: ")))
	},
		Entry("at its token endpoint", &model.Filter{Name: "staff", Type: model.FilterOIDC, Config: `{"client_id":"a","client_secret":{"secret":"cookies"},` +
			`"cookie_secret":"cookies","redirect_uri":"/cb","authorization_endpoint":"https://login.example/a","token_endpoint":"http://127.0.0.1:1323/t"}`}, "/filter/staff"),
		Entry("at another address", &model.GlobalConfig{Name: "staff", Type: model.GlobalConfigOAuth, Config: `{"openid_connect":{"provider":{` +
			`"authorization_endpoint":"https://login.example/a","token_endpoint":"https://login.example/t"},"client_id":"a","client_secret":"cookies","hmac_secret":"cookies",` +
			`"redirect_url":"/cb","redirect_path_matcher":"/cb"},"external_oauth_service":{"name":"127.0.0.1","port":1323}}`}, "/globalconfig/staff"),
	)

	It("needs one read of the proxies, and only if an upstream is on this machine", func() {
		many := func(ip string) (list []model.Object) {
			for i := range 20 {
				list = append(list, at(fmt.Sprintf("u%d", i), ip, 9000))
			}
			return list
		}
		_, away, err := ruled(rules(true), nil, insert(many("192.0.2.8")...))
		Expect(err).NotTo(HaveOccurred())
		Expect(away).To(BeZero())
		_, here, err := ruled(rules(true), nil, insert(many("127.0.0.1")...))
		Expect(err).NotTo(HaveOccurred())
		Expect(here).To(Equal(1))
	})

	It("causes a warning when a proxy starts to listen there", func() {
		moved := proxy("127.0.0.1", 9000)
		moved.HTTPSPort = 9001
		same := proxy("0.0.0.0", 8080)
		same.TrustedHops = 1
		stored := []model.Object{proxy("0.0.0.0", 8080), at("a", "127.0.0.1", 9000), at("b", "192.0.2.7", 9000), at("c", "localhost", 9001), at("d", "::1", 8080)}
		warnings, _, err := ruled(rules(true), stored, replace(moved))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ConsistOf("/upstream/a leads to the listener of proxy gw, at 127.0.0.1:9000"+circle, "/upstream/c leads to the listener of proxy gw, at localhost:9001"+circle))
		warnings, _, err = ruled(rules(true), stored, replace(same))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty(), "its listener is where it was")
	})

	It("cannot be checked if the API's tokens cannot be read", func() {
		r, away := rules(true), errors.New("the database is away")
		r.Open = func() (bool, error) { return false, away }
		_, _, err := ruled(r, nil, insert(at("u", "127.0.0.1", 1323)))
		Expect(err).To(MatchError(away))
	})

	It("causes a warning if every certificate is accepted there", func() {
		u := at("u", "192.0.2.8", 443)
		u.Protocol, u.TLSInsecure = "tls", true
		warnings, _, err := ruled(precheck.Rules{}, nil, insert(u))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(Equal([]string{
			"/upstream/u: its certificate is not verified (Upstream_tls_insecure): anyone on the network path can read and change requests and answers",
		}))
	})

	It("may be forbidden", func() {
		deny, err := egress.ParseEntry("10.0.0.0/8")
		Expect(err).NotTo(HaveOccurred())
		r := precheck.Rules{Upstreams: egress.Lists{Deny: []egress.Entry{deny}}}
		_, _, err = ruled(r, nil, insert(at("u", "10.1.2.3", 80)))
		Expect(err).To(MatchError(ContainSubstring("/upstream/u cannot be used: its address 10.1.2.3 is in 10.0.0.0/8, which --upstream-deny names")))
		warnings, _, err := ruled(r, nil, insert(at("u", "db.example", 80)))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(Equal([]string{"/upstream/u has a DNS name, which only Envoy resolves: --upstream-deny does not apply to the addresses behind it"}))
	})
})
