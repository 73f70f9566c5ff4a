package translate_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// consumer returns the Consumer NAMESPACE/NAME, which was created at a second.
func consumer(namespace, name string, second int, spec string) string {
	return fmt.Sprintf("apiVersion: gateway.gatehouse.dev/v1\nkind: Consumer\nmetadata: {name: %s, namespace: %s, creationTimestamp: \"2026-01-01T00:00:%02dZ\"}\nspec: {%s}", name, namespace, second, spec)
}

var _ = Describe("A Consumer", func() {
	const mobile = "keys: [{secretName: partners, key: mobile}]"
	made := func(step translate.Step, name string) *model.Consumer {
		return find[*model.Consumer](step, model.ConsumerKey(name))
	}

	It("has a name, groups and credentials of its namespace", func() {
		step := newCluster(consumer("shop", "acme", 0, "groups: [gold, beta], keys: [{secretName: partners, key: mobile}], users: [{filter: staff, user: ann}]")).step()
		Expect(made(step, "shop.acme")).To(Equal(&model.Consumer{
			Name: "shop.acme", Groups: model.Groups{"beta@shop", "gold@shop"},
			Credentials: model.ConsumerCredentials{Keys: []string{"shop.partners/mobile"}, Users: []string{"shop.staff/ann"}},
		}))
		Expect(objectIn(step, "Consumer shop/acme").Proxies).To(Equal([]string{"edge", "gatehouse"}))
		Expect(objectIn(step, "Consumer shop/acme").Problems).To(BeEmpty())
	})

	It("has nothing of another namespace, whatever it is called", func() {
		step := newCluster(
			consumer("shop", "acme", 1, "groups: [gold], "+mobile),
			consumer("evil", "acme", 0, "groups: [gold], "+mobile),
			consumer("evil", "shop.acme", 0, "keys: [{secretName: shop.partners, key: mobile}], users: [{filter: shop.staff, user: ann}]"),
		).step()
		Expect(made(step, "shop.acme").Credentials.Keys).To(Equal([]string{"shop.partners/mobile"}))
		Expect(made(step, "evil.acme").Groups).To(Equal(model.Groups{"gold@evil"}))
		Expect(made(step, "evil.acme").Credentials.Keys).To(Equal([]string{"evil.partners/mobile"}))
		Expect(made(step, "evil.shop.acme").Credentials).To(Equal(model.ConsumerCredentials{Keys: []string{"evil.shop.partners/mobile"}, Users: []string{"evil.shop.staff/ann"}}))
	})

	It("does not exist with a group of another namespace", func() {
		step := newCluster(consumer("evil", "acme", 0, `groups: ["gold@shop", gold]`)).step()
		Expect(problems(step, "Consumer evil/acme")).To(Equal([]string{`spec.groups Invalid: "gold@shop" is not a word: the part after the @ is the namespace`}))
		Expect(shown(step)).NotTo(ContainElement(ContainSubstring("consumer")))
	})

	It("does not have a credential that an older one has, and gets it when that one is gone", func() {
		c := newCluster(consumer("shop", "young", 2, "users: [{filter: staff, user: ann}], keys: [{secretName: partners, key: mobile}, {secretName: partners, key: web}]"), consumer("shop", "old", 1, mobile))
		step := c.step()
		Expect(made(step, "shop.old").Credentials.Keys).To(Equal([]string{"shop.partners/mobile"}))
		Expect(made(step, "shop.young").Credentials).To(Equal(model.ConsumerCredentials{Keys: []string{"shop.partners/web"}, Users: []string{"shop.staff/ann"}}))
		Expect(problems(step, "Consumer shop/young")).To(Equal([]string{"spec.keys[0] CredentialConflict: Consumer shop/old has it and is older; this one does not have it"}))
		c.remove("Consumer shop/old")
		Expect(made(c.step(), "shop.young").Credentials.Keys).To(Equal([]string{"shop.partners/mobile", "shop.partners/web"}))
	})

	It("has bounds, also if the schema of the cluster has none", func() {
		keys := strings.Repeat("{secretName: partners, key: a}, ", 51)
		step := newCluster(consumer("shop", "acme", 0, "keys: ["+keys+"]")).step()
		Expect(problems(step, "Consumer shop/acme")).To(Equal([]string{"spec Invalid: has 51 credentials; at most 50 are allowed"}))
	})
})

var _ = Describe("A filter that names consumers and groups", func() {
	config := func(step translate.Step, name string) string {
		return string(find[*model.Filter](step, model.FilterKey(name)).Config)
	}

	It("means those of its namespace", func() {
		step := newCluster(filter("known", "http_filter_consumer", `{"allow":["gold","beta@shop"],"Deny":["out"]}`),
			filter("rules", "rbac", `{"allow":[{"groups":["gold"],"paths":[{"prefix":"/"}]}],"deny":[{"consumers":["acme"]}]}`)).step()
		Expect(config(step, "shop.known")).To(Equal(`{"allow":["gold@shop","beta@shop"],"Deny":["out@shop"]}`))
		Expect(config(step, "shop.rules")).To(Equal(`{"allow":[{"groups":["gold@shop"],"paths":[{"prefix":"/"}]}],"deny":[{"consumers":["shop.acme"]}]}`))
	})

	It("closes if it names a group of another namespace", func() {
		for _, f := range [][2]string{{"http_filter_consumer", `{"deny":["gold@evil"]}`}, {"vh_filter_rbac", `{"allow":[{"groups":["gold@evil"]}]}`}} {
			step := newCluster(filter("known", f[0], f[1])).step()
			Expect(problems(step, "RouteFilter shop/known")).To(Equal([]string{"spec.routeFilterConfig.config Invalid: " +
				map[bool]string{true: "deny", false: "allow.groups"}[f[0] == "http_filter_consumer"] + `: "gold@evil" is a group of another namespace: only a GlobalConfig may name it`}))
			Expect(shown(step)).NotTo(ContainElement("+ /filter/shop.known"))
		}
	})

	It("may name groups of all namespaces as a GlobalConfig", func() {
		step := newCluster(proxyFilter("http_filter_consumer", `{"allow":["gold@shop","staff"]}`, "")).step()
		Expect(problems(step, "GlobalConfig operators/office")).To(BeEmpty())
		Expect(config(step, "operators.office_proxy")).To(Equal(`{"allow":["gold@shop","staff@operators"]}`))
	})
})
