package config

import (
	"fmt"
	"slices"
	"strings"
)

// namespace is the form of a namespace's name (RFC 1123 section 2.1).
const namespace = `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`

// The modes of serve.
const (
	ModeREST       = "rest"
	ModeKubernetes = "kubernetes"
)

// Kubernetes is what serve reads in ModeKubernetes.
type Kubernetes struct {
	// Proxies are the names of the proxies that this installation serves; the first is for
	// objects that name none.
	Proxies []string
	// ProxySettings is a file with the other fields of these proxies; empty means no file.
	ProxySettings string
	// Namespaces are the namespaces that are read; none means all.
	Namespaces []string
	// HostNames are the host names that the objects of a namespace may have, by namespace; those of
	// "*" are for the namespaces that are not named. Nil means every host name in every namespace.
	HostNames map[string][]string
	// XDSService is the Service by which Envoys find the replicas, in the replica's namespace;
	// empty means that it is not known.
	XDSService string
	// Config is the kubeconfig file; empty means the service account of the Pod.
	Config string
}

// kubernetesSettings say what serve reads from Kubernetes.
func kubernetesSettings() []Setting {
	serve := []string{Serve}
	mode := choice("mode", serve, []string{ModeREST, ModeKubernetes},
		"where the configuration comes from: calls of the REST API, or GatewayHost, "+
			"RouteFilter and GlobalConfig objects of Kubernetes",
		func(c *Config) *string { return &c.Mode })
	return []Setting{
		mode,
		{
			Name: "kubernetes-proxies", Type: "names", Default: "gatehouse", commands: serve,
			Usage: "names of the proxies that this installation serves, separated by commas; " +
				"objects that name no proxy belong to the first",
			allowed: "a list of proxy names such as gatehouse,internal",
			set:     setter(func(c *Config) *[]string { return &c.Kubernetes.Proxies }, proxyNames),
		},
		{
			Name: "kubernetes-proxy-settings", Type: "file", commands: serve,
			Usage: "YAML file with the ports and other fields of these proxies, " +
				"as in the part proxies of a configuration document; read again when it changes (default: the defaults of a proxy)",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Kubernetes.ProxySettings }, anyText),
		},
		{
			Name: "kubernetes-namespaces", Type: "names", commands: serve,
			Usage:   "namespaces to read, separated by commas (default: all)",
			allowed: "a list of namespaces such as shop,payments",
			set:     setter(func(c *Config) *[]string { return &c.Kubernetes.Namespaces }, namespaces),
		},
		{
			Name: "kubernetes-host-names", Type: "namespace=host", commands: serve, List: true,
			Usage: `host names that the GatewayHosts of a namespace may have, separated by commas or given again; ` +
				`"*.example.com" allows each name below it, the namespace "*" stands for those that are not named (default: ` +
				`every host name in every namespace)`,
			allowed: "a list such as shop=shop.example.com,shop=*.shop.example.com,*=*.apps.example.com",
			set:     setter(func(c *Config) *map[string][]string { return &c.Kubernetes.HostNames }, namespaceHosts),
		},
		{
			Name: "kubernetes-xds-service", Type: "name", commands: serve,
			Usage: "Service by which Envoys find the replicas, in the namespace of this Pod: " +
				"conditions need a report of each Pod behind it (default: of each replica that reports)",
			allowed: "the name of a Service, such as gatehouse-xds",
			set:     setter(func(c *Config) *string { return &c.Kubernetes.XDSService }, serviceName),
		},
		{
			Name: "kubeconfig", Type: "file", commands: serve,
			Usage:   "kubeconfig file (default: the service account of the Pod, else the file in KUBECONFIG)",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Kubernetes.Config }, anyText),
		},
	}
}

// proxyNames reads a comma-separated list without duplicates.
func proxyNames(s string) (list []string, err error) {
	for one := range strings.SplitSeq(s, ",") {
		name, err := proxyName(strings.TrimSpace(one))
		if err != nil || slices.Contains(list, name) {
			return nil, errNotAllowed
		}
		list = append(list, name)
	}
	return list, nil
}

// serviceName reads the name of a Service; empty means none.
func serviceName(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	return matching(s, `^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
}

// namespaces reads a comma-separated list; empty means none.
func namespaces(s string) (list []string, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		name, err := matching(strings.TrimSpace(one), namespace)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// namespaceHosts reads a comma-separated list of namespaces with a host name each; empty means none.
func namespaceHosts(s string) (map[string][]string, error) {
	if s == "" {
		return nil, nil
	}
	list := map[string][]string{}
	for one := range strings.SplitSeq(s, ",") {
		name, host, _ := strings.Cut(strings.TrimSpace(one), "=")
		if _, err := matching(name, `^\*$|`+namespace); err != nil {
			return nil, err
		}
		if _, err := matching(host, `^\*$|^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$`); err != nil {
			return nil, err
		}
		list[name] = append(list[name], host)
	}
	return list, nil
}

// checkMode checks that the settings fit the mode.
func (c *Config) checkMode(env map[string]string, sources map[string]value) error {
	if c.Mode != ModeKubernetes {
		for _, s := range kubernetesSettings()[1:] {
			if v, given := sources[s.Name]; given {
				return fmt.Errorf("--%s: %q (from %s) requires --mode kubernetes; set both or neither", s.Name, v.text, v.from)
			}
		}
		return nil
	}
	for _, s := range []struct{ name, because string }{
		{
			"database-url",
			"the configuration is in Kubernetes, and each process keeps a private copy of it in a temporary directory",
		},
		{"secret-key-file", "the key is made at each start and stays in memory"},
		{"tls-dir", "certificates come from Secrets that the objects name"},
		{"allow-empty", "there is no database that could be lost"},
	} {
		if v, given := sources[s.name]; given && v.text != "false" {
			return fmt.Errorf("--%s: the value from %s cannot be combined with --mode kubernetes: %s; remove it", s.name, v.from,
				s.because)
		}
	}
	if c.Kubernetes.Config == "" {
		c.Kubernetes.Config = kubeconfig(env)
	}
	return nil
}

// kubeconfig returns the file that the environment names, unless the process runs in a Pod.
func kubeconfig(env map[string]string) string {
	if env["KUBERNETES_SERVICE_HOST"] != "" {
		return ""
	}
	return env["KUBECONFIG"]
}
