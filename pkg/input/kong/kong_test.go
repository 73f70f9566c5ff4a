package kong_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kong"
)

// with returns a file whose route has a plugin, on line 6, and what else there is.
func with(plugin, more string) string {
	return "_format_version: \"3.0\"\nservices:\n- name: shop\n  url: http://10.0.0.1/\n  routes: [{name: root, hosts: [shop.test]}]\n" +
		"  plugins: [" + plugin + "]\n" + more
}

// rsaKey returns a public key in PEM, indented for YAML.
func rsaKey() string {
	GinkgoHelper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	Expect(err).NotTo(HaveOccurred())
	return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "\n", "\n      ")
}

var _ = Describe("A file of Kong", func() {
	const key = "consumers:\n- username: acme\n  keyauth_credentials: [{key: k}]\n"

	DescribeTable("has the plugin", func(plugin, more, want string, notes ...string) {
		r, err := kong.Import(strings.NewReader(with(plugin, more)), kong.Options{})
		Expect(err).NotTo(HaveOccurred())
		var told []string
		for _, n := range r.Notes {
			if !strings.Contains(n.Message, "has its name in it") { // of a key, which all have
				told = append(told, n.String())
			}
		}
		Expect(told).To(HaveExactElements(notes))
		Expect(string(r.Document)).To(ContainSubstring(want))
		closed := strings.Contains(strings.Join(notes, ""), "answer 503")
		Expect(strings.Contains(string(r.Document), "kong-closed")).To(Equal(closed), "%s", r.Document)
	},
		Entry("key-auth", "{name: key-auth}", key, "forward: true"),
		Entry("key-auth for everybody", "{name: key-auth, config: {anonymous: guest}}", key, "kong-closed",
			"line 6: plugin key-auth (shop): anonymous has no equivalent; its routes answer 503"),
		Entry("key-auth without keys", "{name: key-auth}", "", "kong-closed", "line 6: plugin key-auth (shop): there is no key, or no place for one; its routes answer 503"),
		Entry("key-auth that reads bodies", "{name: key-auth, config: {key_in_body: true}}", key, "forward: true", "line 6: plugin key-auth: key_in_body has no equivalent"),
		Entry("one that is off", "{name: ldap-auth, enabled: false}", "", "services:"),
		Entry("an unknown one", "{name: datadog}", "", "services:", "line 6: plugin datadog (shop): has no equivalent"),
		Entry("an unknown one that decides", "{name: ldap-auth}", "", "kong-closed", "line 6: plugin ldap-auth (shop): has no equivalent; its routes answer 503"),
		Entry("code", "{name: pre-function}", "", "kong-closed", "line 6: plugin pre-function (shop): has no equivalent; its routes answer 503"),
		Entry("basic-auth with a short password", "{name: basic-auth}", "consumers:\n- username: ann\n  basicauth_credentials: [{username: ann, password: short}]\n", "kong-closed",
			"line 6: plugin basic-auth (shop): there is no user with a password that can be used; its routes answer 503",
			"line 9: consumer ann: the password of ann has fewer than 12 bytes: it is left out"),
		Entry("basic-auth with a hash, which is no password", "{name: basic-auth}", "_transform: false\nconsumers:\n- username: ann\n"+
			"  basicauth_credentials: [{username: ann, password: 5f4dcc3b5aa765d61d8327deb882cf99}]\n", "kong-closed",
			"line 6: plugin basic-auth (shop): there is no user with a password that can be used; its routes answer 503",
			"line 10: consumer ann: with _transform: false, passwords are hashed in a form that nothing else verifies: that of ann is left out"),
		Entry("an empty acl", "{name: acl}", "", "kong-closed", "line 6: plugin acl (shop): has neither allow nor deny; its routes answer 503"),
		Entry("jwt with a short secret", "{name: jwt}", "consumers:\n- username: acme\n  jwt_secrets: [{key: me, secret: s}]\n", "kong-closed",
			"line 6: plugin jwt (shop): needs a place for the token, and one to 10 credentials that can be used, which are named by iss; its routes answer 503",
			"line 9: consumer acme: its tokens are refused: their key is too short, or is none of RSA or P-256 with HS256"),
		Entry("cors for all", "{name: cors, config: {origins: [], exposed_headers: ['*']}}", "",
			"filter_config:\n        credentials: false\n        expose:\n            - '*'\n        headers:\n            - '*'\n        origins:\n            - '*'\n"),
		Entry("cors for all with credentials", "{name: cors, config: {origins: [https://a.test, '*'], credentials: true, exposed_headers: ['*', x-total]}}", "",
			"filter_config:\n        any_origin_credentials: true\n        credentials: true\n        expose:\n            - x-total\n"+
				"        headers:\n            - '*'\n        origins:\n            - '*'\n",
			"line 6: plugin cors (shop): every page that a user opens acts as the user, as in Kong: name the origins"),
		Entry("cors for an origin with credentials", "{name: cors, config: {origins: [https://a.test], credentials: true}}", "",
			"filter_config:\n        credentials: true\n        headers:\n            - '*'\n        origins:\n            - https://a.test\n"),
		Entry("a large size", "{name: request-size-limiting}", "", "services:", "line 6: plugin request-size-limiting (shop): a limit is at most 100 MiB: it is left out"),
		Entry("another header for the ID", "{name: correlation-id}", "", "take_over: true",
			"line 6: plugin correlation-id (shop): the ID of a request is in X-Request-Id, and not in Kong-Request-ID"),
		Entry("a limit for each address", "{name: rate-limiting, config: {minute: 5, limit_by: ip}}", "", "remote_address: client"),
		Entry("a limit for consumers without any", "{name: rate-limiting, config: {minute: 5}}", "", "remote_address: client"),
		Entry("a header that is added", "{name: request-transformer, config: {add: {headers: ['x-a:1']}}}", "", "set:\n                x-a: \"1\"",
			"line 6: plugin request-transformer (shop): add sets a header here, also one that is there"),
		Entry("a header that is replaced", "{name: request-transformer, config: {remove: {headers: [x-a]}, add: {headers: ['x-a:1']}}}", "", "set:\n                x-a: \"1\""),
		Entry("a body that is changed", "{name: response-transformer, config: {remove: {json: [a]}}}", "", "services:",
			"line 6: plugin response-transformer: remove: json has no equivalent"),
		Entry("a dump with all its fields", "{name: key-auth, config: {anonymous: null, key_in_body: false, run_on_preflight: true}, protocols: [http]}", key, "forward: true"),
		Entry("a shared configuration", "{name: ip-restriction, _config: office}", "_plugin_configs: {office: {allow: [10.0.0.0/8]}}\n", "- 10.0.0.0/8"),
		Entry("a shared configuration and its own", "{name: ip-restriction, _config: office, config: {allow: [192.0.2.1]}}", "_plugin_configs: {office: {allow: [10.0.0.0/8]}}\n", "- 192.0.2.1"),
		Entry("basic-auth and jwt", "{name: basic-auth}, {name: jwt, config: {claims_to_verify: [exp], uri_param_names: []}}",
			"consumers:\n- username: ann\n  basicauth_credentials: [{username: ann, password: correct-horse-battery}]\n  jwt_secrets: [{key: me, secret: "+strings.Repeat("s", 32)+"}]\n",
			"kong-closed", "line 6: plugin basic-auth (shop): a route has only one of basic-auth and jwt here; its routes answer 503"),
		Entry("passwords that are passed on", "{name: basic-auth}", "consumers:\n- username: ann\n  basicauth_credentials: [{username: ann, password: correct-horse-battery}]\n",
			"users:\n            - kong-users/ann\n            - kong-users-forwarded/ann"),
		Entry("defaults", "{name: key-auth}", "_info: {defaults: {route: {strip_path: false}}, select_tags: [a]}\n"+key, "forward: true",
			"line 7: _info: defaults has no equivalent"),
	)

	DescribeTable("has a route that", func(version, route, want, not string, notes ...string) {
		r, err := kong.Import(strings.NewReader("_format_version: \""+version+"\"\nservices:\n- name: shop\n  url: http://10.0.0.1/\n  routes:\n  - "+route+
			"\n  - {name: other, hosts: [other.test]}\n"), kong.Options{})
		Expect(err).NotTo(HaveOccurred())
		var told []string
		for _, n := range r.Notes {
			told = append(told, n.String())
		}
		Expect(told).To(HaveExactElements(notes))
		Expect(string(r.Document)).To(And(ContainSubstring(want), Not(ContainSubstring(not))))
	},
		Entry("is for a server name", "3.0", "{name: root, snis: [shop.test]}", "fqdn: other.test", "route_name: root",
			"line 6: route root: is for server names of TLS (snis), which has no equivalent, and is left out"),
		Entry("has no host that can be translated", "3.0", "{name: root, hosts: ['shop.*']}", "fqdn: other.test", "route_name: root",
			"line 6: route root: the host shop.* has no equivalent, and is left out"),
		Entry("has another one", "3.0", "{name: root, hosts: ['shop.*', shop.test]}", "fqdn: shop.test", "shop.*",
			"line 6: route root: the host shop.* has no equivalent, and is left out"),
		Entry("has an expression without a mark", "2.1", `{name: root, hosts: [shop.test], paths: ['/a/\d+']}`, "match: regex", "route_prefix: ~"),
		Entry("has a path of an older file", "2.1", `{name: root, hosts: [shop.test], paths: [/a~b]}`, "route_prefix: /a~b", "match: regex"),
		Entry("has a header with an expression", "3.0", `{name: root, hosts: [shop.test], headers: {x-a: ['~*^v[0-9]$', b.c]}}`, `regex: (?i)(.*(?:^v[0-9]$).*|b\.c)`, "~*"),
	)

	DescribeTable("refuses a consumer who has the plugin", func(plugin, group string, left bool, note string) {
		r, err := kong.Import(strings.NewReader(with("{name: key-auth}",
			"consumers:\n- username: acme\n  groups: [{name: gold}]\n  keyauth_credentials: [{key: k}]\n"+plugin+
				"- username: globex\n  keyauth_credentials: [{key: k2}]\n"+group)), kong.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Contains(string(r.Document), "acme")).To(Equal(left), "%s", r.Document)
		Expect(string(r.Document)).To(ContainSubstring("globex"))
		var told []string
		for _, n := range r.Notes {
			told = append(told, n.String())
		}
		Expect(told).To(ContainElement(note))
	},
		Entry("addresses", "  plugins: [{name: ip-restriction, config: {allow: [192.0.2.1]}}]\n", "", false,
			"line 11: plugin ip-restriction (acme): has no equivalent for single consumers; they are left out, and their requests refused"),
		Entry("an answer", "  plugins: [{name: request-termination}]\n", "", false,
			"line 11: plugin request-termination (acme): has no equivalent for single consumers; they are left out, and their requests refused"),
		Entry("by a group", "", "consumer_groups: [{name: gold, plugins: [{name: acl, config: {deny: [x]}}]}]\n", false,
			"line 13: plugin acl (gold): has no equivalent for single consumers; they are left out, and their requests refused"),
		Entry("only if it decides", "  plugins: [{name: response-transformer}]\n", "", true,
			"line 11: plugin response-transformer (acme): has no equivalent for single consumers"),
	)

	It("has public and shared keys of tokens", func() {
		r, err := kong.Import(strings.NewReader(with("{name: jwt, config: {claims_to_verify: [exp], uri_param_names: []}}",
			"consumers:\n- username: acme\n  jwt_secrets:\n  - key: me\n    algorithm: RS256\n    rsa_public_key: |\n      "+rsaKey()+
				"\n- username: globex\n  jwt_secrets: [{key: other, secret: "+strings.Repeat("s", 32)+"}]\n")), kong.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Notes).To(BeEmpty())
		Expect(string(r.Document)).To(And(ContainSubstring("kty: RSA"), ContainSubstring("issuer: me"), ContainSubstring("forward: true"),
			ContainSubstring("other_issuers:"), ContainSubstring("hmac_key: "+strings.Repeat("s", 32))))
	})

	DescribeTable("is refused", func(text, message string) {
		_, err := kong.Import(strings.NewReader(text), kong.Options{})
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no YAML", "a: [", "yaml"), Entry("no mapping", "- a", "the file is no mapping"), Entry("nothing", "", "the file is no mapping"),
		Entry("another file", "a: 1", "_format_version is"), Entry("no services", `_format_version: "3.0"`, "the file has no services"),
		Entry("a shared configuration that is missing", with("{name: acl, _config: none}", ""), `line 6: _config: "none" is not in _plugin_configs`),
		Entry("too much", strings.Repeat(" ", 16<<20)+"\na: 1", "more than 16 MiB"),
	)
})
