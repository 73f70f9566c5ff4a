package config_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// noConsole has the defaults of what is set for an identity provider.
func noConsole() config.ConsoleOIDC {
	return config.ConsoleOIDC{Scopes: []string{"profile"}, GroupsClaim: "groups", Session: 8 * time.Hour}
}

var _ = Describe("The identity provider of the console", func() {
	const (
		secret   = "GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET=hunter2"
		issuer   = "https://id.example.com/realms/staff"
		variable = "environment GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET"
	)
	// with returns flags that are complete, but for those that are given: names and values.
	with := func(changed ...string) map[string]string {
		flags := map[string]string{
			"console-oidc-issuer": issuer, "console-oidc-client-id": "gatehouse", "console-oidc-groups": "platform=admin",
		}
		for i := 0; i < len(changed); i += 2 {
			if flags["console-oidc-"+changed[i]] = changed[i+1]; changed[i+1] == "" {
				delete(flags, "console-oidc-"+changed[i])
			}
		}
		return flags
	}

	It("is read, with its secret from a file or from the environment", func() {
		cfg := given{flags: with("groups", "platform=admin, Shop floor=editor:shop-ci,/staff=viewer", "scopes", "openid, groups", "groups-claim", "https://id/groups",
			"redirect-url", "https://gw.example.com/a/ui/", "name", "Staff", "session", "30m", "client-secret-file", "/etc/gw.yaml"), file: " hunter2\n"}.mustLoad()
		Expect(cfg.Console).To(Equal(config.ConsoleOIDC{
			Issuer: issuer, ClientID: "gatehouse", ClientSecretFile: "/etc/gw.yaml", ClientSecret: "hunter2", RedirectURL: "https://gw.example.com/a/ui/",
			Scopes: []string{"groups"}, GroupsClaim: "https://id/groups", Name: "Staff", Session: 30 * time.Minute,
			Groups: []config.GroupRights{{Group: "platform", Role: "admin"}, {Group: "Shop floor", Role: "editor", Token: "shop-ci"}, {Group: "/staff", Role: "viewer"}},
		}))
		cfg, warnings, err := given{flags: with(), env: []string{secret}}.load()
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
		Expect([]string{cfg.Console.ClientSecret, cfg.Console.Name}).To(Equal([]string{"hunter2", "id.example.com"}))
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			Expect(fmt.Sprintf(format, cfg)).NotTo(ContainSubstring("hunter2"))
		}
	})

	DescribeTable("is refused if it is not complete, and its secret not shown", func(g given, want string) {
		_, _, err := g.load()
		Expect(err).To(MatchError(want))
		Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
	},
		Entry("no issuer", given{flags: with("issuer", ""), env: []string{secret}}, "--console-oidc-client-id requires --console-oidc-issuer, the identity provider"),
		Entry("no client", given{flags: with("client-id", ""), env: []string{secret}}, "--console-oidc-issuer requires --console-oidc-client-id"),
		Entry("no groups", given{flags: with("groups", ""), env: []string{secret}}, "--console-oidc-issuer requires --console-oidc-groups"),
		Entry("no secret", given{flags: with()}, "--console-oidc-issuer requires --console-oidc-client-secret-file or "+variable),
		Entry("an empty file", given{flags: with("client-secret-file", "/etc/gw.yaml"), file: "\n"}, "--console-oidc-issuer requires --console-oidc-client-secret-file or "+variable),
		Entry("no file", given{flags: with("client-secret-file", "/not/there")}, "--console-oidc-client-secret-file: reading /not/there: file does not exist"),
		Entry("two secrets", given{flags: with("client-secret-file", "/etc/gw.yaml"), file: "hunter2", env: []string{secret}},
			"--console-oidc-client-secret-file and "+variable+" are both given: give one"),
		Entry("two lines", given{flags: with("client-secret-file", "/etc/gw.yaml"), file: "hunter2\nhunter2"},
			"--console-oidc-client-secret-file: /etc/gw.yaml: the secret may have at most 1024 characters, all of them visible ASCII"),
		Entry("an editor in Kubernetes", given{command: config.Serve, flags: with("groups", "shop=editor:x"), env: []string{secret, "GATEHOUSE_MODE=kubernetes"}},
			`--console-oidc-groups: with --mode kubernetes the API only reads, so "shop" cannot be an editor; use viewer`),
	)

	const (
		groups = "a list such as platform=admin,shop=editor:shop-ci,staff=viewer; groups have no comma and no equals sign"
		urls   = "a URL of https without a query such as https://id.example.com/realms/staff; http only for this machine"
		pages  = "a URL that ends with /ui/, such as https://gateway.example.com/ui/"
	)
	DescribeTable("is refused if it is wrong", func(name, text, want string) {
		_, _, err := given{flags: with(name, text), env: []string{secret}}.load()
		Expect(err).To(MatchError(fmt.Sprintf("--console-oidc-%s: %q (from the command line) is not %s", name, text, want)))
	},
		Entry(nil, "groups", "platform", groups),
		Entry(nil, "groups", "platform=root", groups),
		Entry(nil, "groups", "=admin", groups),
		Entry(nil, "groups", "platform=admin,", groups),
		Entry(nil, "groups", "a=admin,a=viewer", groups),
		Entry(nil, "groups", "a=editor", groups),
		Entry(nil, "groups", "a=editor:", groups),
		Entry(nil, "groups", "a=editor:x/y", groups),
		Entry(nil, "groups", "a=admin:x", groups),
		Entry("a distinguished name, which is not the group CN", "groups", "CN=admin,OU=x=viewer", groups),
		Entry(nil, "issuer", "http://id.example.com", urls),
		Entry(nil, "issuer", "https://id.example.com/?x", urls),
		Entry(nil, "issuer", "https://a@id.example.com", urls),
		Entry(nil, "issuer", "id.example.com", urls),
		Entry(nil, "redirect-url", "https://gw.example.com/", pages),
		Entry(nil, "redirect-url", "https://gw.example.com/ui/?x", pages),
		Entry(nil, "redirect-url", "javascript:alert(1)/ui/", pages),
		Entry(nil, "scopes", "a b", "a list of scopes such as profile,groups"),
		Entry(nil, "client-id", "a b", "1 to 255 visible ASCII characters"),
		Entry(nil, "groups-claim", "a b", "the name of a claim, 1 to 255 visible ASCII characters"),
		Entry(nil, "name", "a\nb", "a text of at most 64 characters"),
		Entry(nil, "session", "25h", "a duration from 5m to 24h such as 8h"),
		Entry(nil, "session", "1m", "a duration from 5m to 24h such as 8h"),
	)

	It("may be on this machine without TLS", func() {
		for _, local := range []string{"http://localhost:8080/realms/a", "http://127.0.0.1", "http://[::1]:1"} {
			Expect(given{flags: with("issuer", local), env: []string{secret}}.mustLoad().Console.Issuer).To(Equal(local))
		}
	})
})
