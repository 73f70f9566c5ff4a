package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

var _ = Describe("The settings of --mode kubernetes", func() {
	It("are read", func() {
		cfg := given{command: config.Serve, flags: map[string]string{
			"mode": "kubernetes", "kubernetes-proxies": "edge, internal", "kubernetes-proxy-settings": "/etc/proxies.yaml",
			"kubernetes-namespaces": "shop,payments", "kubernetes-host-names": "shop=shop.example.com, shop=*.shop.example.com,*=*", "kubeconfig": "/etc/kube.yaml",
		}}.mustLoad()
		Expect(cfg.Mode).To(Equal("kubernetes"))
		Expect(cfg.Kubernetes).To(Equal(config.Kubernetes{
			Proxies: []string{"edge", "internal"}, ProxySettings: "/etc/proxies.yaml", Namespaces: []string{"shop", "payments"},
			HostNames: map[string][]string{"shop": {"shop.example.com", "*.shop.example.com"}, "*": {"*"}}, Config: "/etc/kube.yaml",
		}))
	})

	It("have the documented defaults", func() {
		cfg := given{command: config.Serve}.mustLoad()
		Expect(cfg.Mode).To(Equal("rest"))
		Expect(cfg.Kubernetes).To(Equal(config.Kubernetes{Proxies: []string{"gatehouse"}}))
	})

	DescribeTable("find the kubeconfig file", func(flag string, env []string, want string) {
		g := given{command: config.Serve, flags: map[string]string{"mode": "kubernetes"}, env: env}
		if flag != "" {
			g.flags["kubeconfig"] = flag
		}
		Expect(g.mustLoad().Kubernetes.Config).To(Equal(want))
	},
		Entry("that the flag names, first of all", "/a", []string{"KUBECONFIG=/b", "KUBERNETES_SERVICE_HOST=10.96.0.1"}, "/a"),
		Entry("not at all in a Pod: the service account is used", "", []string{"KUBECONFIG=/b", "KUBERNETES_SERVICE_HOST=10.96.0.1"}, ""),
		Entry("that KUBECONFIG names otherwise", "", []string{"KUBECONFIG=/b"}, "/b"),
	)

	DescribeTable("cannot be combined with everything", func(flags map[string]string, says string) {
		_, _, err := given{command: config.Serve, flags: flags}.load()
		Expect(err).To(MatchError(says))
	},
		Entry("a proxy's name", map[string]string{"mode": "kubernetes", "kubernetes-proxies": "a,b/c"},
			`--kubernetes-proxies: "a,b/c" (from the command line) is not a list of proxy names such as gatehouse,internal`),
		Entry("a proxy twice", map[string]string{"mode": "kubernetes", "kubernetes-proxies": "a,a"},
			`--kubernetes-proxies: "a,a" (from the command line) is not a list of proxy names such as gatehouse,internal`),
		Entry("a namespace", map[string]string{"mode": "kubernetes", "kubernetes-namespaces": "Shop"},
			`--kubernetes-namespaces: "Shop" (from the command line) is not a list of namespaces such as shop,payments`),
		Entry("a host name without a namespace", map[string]string{"mode": "kubernetes", "kubernetes-host-names": "shop.example.com"},
			`--kubernetes-host-names: "shop.example.com" (from the command line) is not a list such as shop=shop.example.com,shop=*.shop.example.com,*=*.apps.example.com`),
		Entry("a host name that none is", map[string]string{"mode": "kubernetes", "kubernetes-host-names": "shop=shop.*"},
			`--kubernetes-host-names: "shop=shop.*" (from the command line) is not a list such as shop=shop.example.com,shop=*.shop.example.com,*=*.apps.example.com`),
		Entry("another mode", map[string]string{"mode": "k8s"},
			`--mode: "k8s" (from the command line) is not one of rest, kubernetes`),
		Entry("a database", map[string]string{"mode": "kubernetes", "database-url": "postgres://db/gw"},
			`--database-url: the value from the command line cannot be combined with --mode kubernetes: the configuration is in Kubernetes, and each process keeps a private copy of it in a temporary directory; remove it`),
		Entry("a key file", map[string]string{"mode": "kubernetes", "secret-key-file": "/key"},
			`--secret-key-file: the value from the command line cannot be combined with --mode kubernetes: the key is made at each start and stays in memory; remove it`),
		Entry("a directory of certificates", map[string]string{"mode": "kubernetes", "tls-dir": "/certs"},
			`--tls-dir: the value from the command line cannot be combined with --mode kubernetes: certificates come from Secrets that the objects name; remove it`),
		Entry("an empty database", map[string]string{"mode": "kubernetes", "allow-empty": "true"},
			`--allow-empty: the value from the command line cannot be combined with --mode kubernetes: there is no database that could be lost; remove it`),
		Entry("the other mode", map[string]string{"kubernetes-namespaces": "shop"},
			`--kubernetes-namespaces: "shop" (from the command line) requires --mode kubernetes; set both or neither`),
		Entry("a kubeconfig in the other mode", map[string]string{"mode": "rest", "kubeconfig": "/a"},
			`--kubeconfig: "/a" (from the command line) requires --mode kubernetes; set both or neither`),
	)
})
