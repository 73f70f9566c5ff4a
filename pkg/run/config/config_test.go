package config_test

import (
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// given is the input of a run of the program.
type given struct {
	command string
	flags   map[string]string
	env     []string
	file    string // the text of /etc/gw.yaml
}

func (g given) load() (config.Config, []string, error) {
	if g.command == "" {
		g.command = config.Standalone
	}
	env := append([]string{"HOME=/home/ann", "PATH=/bin"}, g.env...)
	return config.Load(g.command, g.flags, env, func(name string) ([]byte, error) {
		if name != "/etc/gw.yaml" {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(g.file), nil
	})
}

func (g given) mustLoad() config.Config {
	GinkgoHelper()
	cfg, _, err := g.load()
	Expect(err).NotTo(HaveOccurred())
	return cfg
}

var _ = Describe("Load", func() {
	It("has the documented defaults", func() {
		Expect(given{}.mustLoad()).To(Equal(config.Config{
			DataDir:    "/home/ann/.local/share/gatehouse",
			APIAddr:    "127.0.0.1:1323",
			XDSAddr:    "127.0.0.1:18000",
			SchemaWord: "core_db",
			LogLevel:   "info",
			LogFormat:  "auto",
			AccessLog:  "json",
			Proxy:      "gw",
			HTTPPort:   8080,
			HTTPSPort:  8443,
			ListenIP:   "127.0.0.1",
			AdminAddr:  "127.0.0.1:9001",

			Console: noConsole(),

			RevisionKeepAge: 30 * 24 * time.Hour, RevisionKeepEntries: 100_000,
			ClusterWait: 20 * time.Second, RemovalGrace: 2 * time.Second,
			Explicit: map[string]bool{},
		}))
	})

	DescribeTable("precedence: defaults < file < environment < flags",
		func(g given, proxy string, explicit bool) {
			cfg := g.mustLoad()
			Expect(cfg.Proxy).To(Equal(proxy))
			Expect(cfg.Explicit["proxy"]).To(Equal(explicit))
		},
		Entry("default", given{}, "gw", false),
		Entry("file over default", given{
			flags: map[string]string{"config": "/etc/gw.yaml"}, file: "proxy: from-file\n",
		}, "from-file", true),
		Entry("environment over file", given{
			flags: map[string]string{"config": "/etc/gw.yaml"}, file: "proxy: from-file\n",
			env: []string{"GATEHOUSE_PROXY=from-env"},
		}, "from-env", true),
		Entry("flag over environment and file", given{
			flags: map[string]string{"config": "/etc/gw.yaml", "proxy": "from-flag"}, file: "proxy: from-file\n",
			env: []string{"GATEHOUSE_PROXY=from-env"},
		}, "from-flag", true),
		Entry("the file named by the environment", given{
			env: []string{"GATEHOUSE_CONFIG=/etc/gw.yaml"}, file: "proxy: from-file\n",
		}, "from-file", true),
		Entry("the file named by a flag over the one of the environment", given{
			flags: map[string]string{"config": "/etc/gw.yaml"},
			env:   []string{"GATEHOUSE_CONFIG=/not/there.yaml"}, file: "proxy: from-file\n",
		}, "from-file", true),
		Entry("an empty variable counts as unset", given{env: []string{"GATEHOUSE_PROXY="}}, "gw", false),
		Entry("a key without a value counts as unset", given{
			flags: map[string]string{"config": "/etc/gw.yaml"}, file: "proxy:\n",
		}, "gw", false),
		Entry("a value equal to the default is still explicit", given{flags: map[string]string{"proxy": "gw"}}, "gw", true),
	)

	It("reads every setting from the file", func() {
		cfg := given{flags: map[string]string{"config": "/etc/gw.yaml"}, file: `
database-url: postgres://u:p@db/gw   # a comment
data-dir: /var/lib/gw
api-addr: 0.0.0.0:80
xds-addr: "[::1]:0"
xds-tls-cert: /etc/xds.crt
xds-tls-key: /etc/xds.key
xds-tls-client-ca: /etc/xds.ca
xds-tls-client-crl: /etc/xds.crl
insecure-xds: true
schema-word: word
log-level: debug
log-format: json
access-log: off
proxy: edge
envoy: /opt/envoy
http-port: 81
https-port: 444
listen-ip: "::"
trusted-hops: 2
admin-addr: 127.0.0.1:0
demo: true
insecure-api: true
api-hosts: api.example.com, GW
api-tls-cert: /etc/gw.crt
api-tls-key: /etc/gw.key
secret-key-file: /etc/gw.secret
revision-keep-age: 48h
revision-keep-entries: 500
cluster-wait: 5s
removal-grace: 50ms
upstream-allow: 10.0.0.0/8, *.shop.example
upstream-deny: 10.9.0.0/16
provider-allow: 127.0.0.1, idp.internal
upstream-ca-file: /etc/gw.ca
debug-addr: "[::1]:6060"
tls-dir: /etc/letsencrypt/live
ratelimit-address: limits.example:18001
ratelimit-metrics: "http://a.example:18004, https://[::1]/stats"
otlp-traces: http://collector:4318
otlp-metrics: https://collector/otlp
zone: europe-west1-b
upstream-sockets: /run/app, /run/shop/
`}.mustLoad()
		Expect(cfg.Explicit).To(HaveLen(42))
		cfg.Explicit = nil
		Expect(cfg.DatabaseURL).To(Equal("postgres://u:p@db/gw"))
		cfg.DatabaseURL = ""
		Expect(fmt.Sprint(cfg.UpstreamAllow, cfg.UpstreamDeny)).To(Equal("[10.0.0.0/8 *.shop.example] [10.9.0.0/16]"))
		Expect(fmt.Sprint(cfg.ProviderAllow)).To(Equal("[127.0.0.1 idp.internal]"))
		cfg.UpstreamAllow, cfg.UpstreamDeny, cfg.ProviderAllow = nil, nil, nil
		Expect(cfg.UpstreamCAFile).To(Equal("/etc/gw.ca"))
		cfg.UpstreamCAFile = ""
		Expect([]string{cfg.OTLPTraces, cfg.OTLPMetrics}).To(Equal([]string{"http://collector:4318/v1/traces", "https://collector/otlp"}))
		cfg.OTLPTraces, cfg.OTLPMetrics = "", ""
		Expect(cfg).To(Equal(config.Config{
			DataDir: "/var/lib/gw", APIAddr: "0.0.0.0:80", XDSAddr: "[::1]:0", SchemaWord: "word",
			LogLevel: "debug", LogFormat: "json", AccessLog: "off", Proxy: "edge", Envoy: "/opt/envoy",
			HTTPPort: 81, HTTPSPort: 444, ListenIP: "::", TrustedHops: 2, Zone: "europe-west1-b", UpstreamSockets: []string{"/run/app", "/run/shop"}, AdminAddr: "127.0.0.1:0", Demo: true,
			InsecureAPI: true, APIHosts: []string{"api.example.com", "gw"}, APITLSCert: "/etc/gw.crt", APITLSKey: "/etc/gw.key",
			XDSTLSCert: "/etc/xds.crt", XDSTLSKey: "/etc/xds.key", XDSTLSClientCA: "/etc/xds.ca", XDSTLSClientCRL: "/etc/xds.crl", InsecureXDS: true,
			SecretKeyFile: "/etc/gw.secret", RevisionKeepAge: 48 * time.Hour, RevisionKeepEntries: 500,
			ClusterWait: 5 * time.Second, RemovalGrace: 50 * time.Millisecond, RateLimitAddress: "limits.example:18001",
			DebugAddr: "[::1]:6060", TLSDir: "/etc/letsencrypt/live", Console: noConsole(),
			RateLimitMetrics: []*url.URL{{Scheme: "http", Host: "a.example:18004", Path: "/metrics"}, {Scheme: "https", Host: "[::1]", Path: "/stats"}},
		}))
	})

	It("treats an empty file as no settings", func() {
		g := given{flags: map[string]string{"config": "/etc/gw.yaml"}, file: "# nothing\n"}
		Expect(g.mustLoad().Explicit).To(BeEmpty())
	})

	It("ignores settings of other commands, wherever they come from", func() {
		g := given{
			command: config.Serve, flags: map[string]string{"config": "/etc/gw.yaml"}, file: "http-port: 81\n",
			env: []string{"GATEHOUSE_DEMO=banana"},
		}
		cfg := g.mustLoad()
		Expect(cfg.HTTPPort).To(BeZero())
		Expect(cfg.Explicit).To(BeEmpty())
	})

	DescribeTable("the data directory",
		func(env []string, want string) {
			Expect(given{env: env}.mustLoad().DataDir).To(Equal(want))
		},
		Entry("XDG", []string{"XDG_DATA_HOME=/xdg"}, "/xdg/gatehouse"),
		Entry("a relative XDG_DATA_HOME is ignored", []string{"XDG_DATA_HOME=xdg"}, "/home/ann/.local/share/gatehouse"),
		Entry("given", []string{"XDG_DATA_HOME=/xdg", "GATEHOUSE_DATA_DIR=here"}, "here"),
	)

	It("requires a data directory or a database", func() {
		_, _, err := config.Load(config.Serve, nil, nil, nil)
		Expect(err).To(MatchError("--data-dir: not given, and neither HOME nor XDG_DATA_HOME is set; give a directory, or --database-url"))
		_, _, err = config.Load(config.Serve, map[string]string{"database-url": "postgres://db/gw"}, nil, nil)
		Expect(err).NotTo(HaveOccurred())
		_, _, err = config.Load(config.Bootstrap, nil, nil, nil)
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("A bad setting", func() {
	const (
		addr     = `is not an address HOST:PORT such as 127.0.0.1:1323`
		xdsAddr  = `is not an address HOST:PORT such as 127.0.0.1:18000`
		name     = `is not a proxy name: 1 to 253 characters of A-Z a-z 0-9 . _ - and not the name of an API call (dump, copy, deepcopy, copyroute)`
		hosts    = `is not a list of host names such as api.example.com,gateway.internal, without ports`
		debug    = `is not a loopback address IP:PORT such as 127.0.0.1:6060: profiles show what the program does and holds, so only this machine may read them (from elsewhere through ssh -L)`
		database = `is not a database URL such as sqlite:///abs/path.db or postgres://user:password@host:5432/name`
	)
	long := strings.Repeat("n", 254)

	DescribeTable("is reported with its source and the allowed values",
		func(flag, text, rest string) {
			for from, g := range map[string]given{
				"the command line": {flags: map[string]string{flag: text}},
				"environment GATEHOUSE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")): {
					env: []string{"GATEHOUSE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) + "=" + text},
				},
				"/etc/gw.yaml line 3": {
					flags: map[string]string{"config": "/etc/gw.yaml"},
					file:  fmt.Sprintf("# settings\n\n%s: %q\n", flag, text),
				},
			} {
				_, _, err := g.load()
				Expect(err).To(MatchError(fmt.Sprintf("--%s: %q (from %s) %s", flag, text, from, rest)))
			}
		},
		Entry(nil, "http-port", "70000", "is not a port, 1 to 65535"),
		Entry(nil, "http-port", "0", "is not a port, 1 to 65535"),
		Entry(nil, "http-port", "abc", "is not a port, 1 to 65535"),
		Entry(nil, "http-port", "-1", "is not a port, 1 to 65535"),
		Entry(nil, "https-port", "8443.0", "is not a port, 1 to 65535"),
		Entry(nil, "api-addr", "1323", addr),
		Entry(nil, "api-addr", "127.0.0.1", addr),
		Entry(nil, "api-addr", "127.0.0.1:70000", addr),
		Entry(nil, "api-addr", "http://127.0.0.1:1323", addr),
		Entry(nil, "xds-addr", "::1:18000", xdsAddr),
		Entry(nil, "admin-addr", "localhost:9001", "is not an address IP:PORT such as 127.0.0.1:9001"),
		Entry(nil, "listen-ip", "localhost", "is not an IPv4 or IPv6 address"),
		Entry(nil, "listen-ip", "127.0.0.1:80", "is not an IPv4 or IPv6 address"),
		Entry(nil, "listen-ip", "fe80::1%eth0", "is not an IPv4 or IPv6 address"),
		Entry(nil, "trusted-hops", "11", "is not a whole number from 0 to 10"),
		Entry(nil, "trusted-hops", "-1", "is not a whole number from 0 to 10"),
		Entry(nil, "schema-word", "core-db", "is not a word of at most 63 letters, digits and underscores that starts with a letter"),
		Entry(nil, "log-level", "INFO", "is not one of debug, info, warn, error"),
		Entry(nil, "log-format", "xml", "is not one of auto, text, json"),
		Entry(nil, "access-log", "on", "is not one of json, off"),
		Entry(nil, "proxy", "a/b", name),
		Entry(nil, "proxy", "dump", name),
		Entry(nil, "proxy", "..", name),
		Entry("a name of 254 characters", "proxy", long, name),
		Entry(nil, "demo", "maybe", "is not true or false"),
		Entry(nil, "insecure-api", "maybe", "is not true or false"),
		Entry(nil, "api-hosts", "gw.example:1323", hosts),
		Entry(nil, "api-hosts", "a,,b", hosts),
		Entry(nil, "api-hosts", "http://gw", hosts),
		Entry(nil, "api-hosts", "*", hosts),
		Entry(nil, "upstream-allow", "10.0.0.1/8", "is not a list such as 10.0.0.0/8,192.0.2.1,api.example.com,*.shop.example"),
		Entry(nil, "upstream-deny", "10.0.0.0/8,,a", "is not a list such as 10.0.0.0/8,192.0.2.1,api.example.com,*.shop.example"),
		Entry(nil, "revision-keep-age", "59s", "is not a duration of at least 1m such as 720h"),
		Entry(nil, "revision-keep-age", "30d", "is not a duration of at least 1m such as 720h"),
		Entry(nil, "cluster-wait", "0s", "is not a duration from 1s to 1h such as 20s"),
		Entry(nil, "cluster-wait", "20", "is not a duration from 1s to 1h such as 20s"),
		Entry(nil, "removal-grace", "0s", "is not a duration from 1ms to 1h such as 2s"),
		Entry(nil, "ratelimit-address", "limits.example", "is not an address HOST:PORT such as ratelimit.internal:18001"),
		Entry(nil, "ratelimit-address", ":18001", "is not an address HOST:PORT such as ratelimit.internal:18001"),
		Entry(nil, "ratelimit-address", "10.0.0.1:0", "is not an address HOST:PORT such as ratelimit.internal:18001"),
		Entry(nil, "removal-grace", "2h", "is not a duration from 1ms to 1h such as 2s"),
		Entry(nil, "debug-addr", "0.0.0.0:6060", debug),
		Entry(nil, "debug-addr", ":6060", debug),
		Entry(nil, "debug-addr", "[::]:6060", debug),
		Entry(nil, "debug-addr", "192.0.2.1:6060", debug),
		Entry(nil, "debug-addr", "localhost:6060", debug),
		Entry(nil, "debug-addr", "127.0.0.1", debug),
		Entry(nil, "revision-keep-entries", "0", "is not a whole number from 1 to 100000000"),
	)

	DescribeTable("never shows a database URL, which may hold a password",
		func(text string) {
			_, _, err := given{flags: map[string]string{"database-url": text}}.load()
			Expect(err).To(MatchError("--database-url: the value from the command line " + database))
		},
		Entry("another database", "mysql://u:hunter2@db/gw"),
		Entry("no URL", "host=db password=hunter2"),
		Entry("a bad escape", "postgres://u:hunter2%zz@db/gw"),
		Entry("relative SQLite", "sqlite://hunter2.db"),
		Entry("opaque SQLite", "sqlite:hunter2.db"),
		Entry("a directory", "sqlite:///hunter2/"),
	)

	DescribeTable("in the file is reported",
		func(text, want string) {
			_, _, err := given{flags: map[string]string{"config": "/etc/gw.yaml"}, file: text}.load()
			Expect(err).To(MatchError(want))
		},
		Entry("an unknown key", "api-addr: 127.0.0.1:1\nhttp_port: 80\n", `/etc/gw.yaml line 2: "http_port" is not a setting; the nearest is "http-port"`),
		Entry("the file's own name", "config: x\n", `/etc/gw.yaml line 1: "config" is not a setting; the nearest is "zone"`),
		Entry("a key twice", "proxy: a\ndemo: true\nproxy: b\n", `/etc/gw.yaml line 3: "proxy" is given twice (first: /etc/gw.yaml line 1)`),
		Entry("a list", "proxy: [a]\n", `/etc/gw.yaml line 1: "proxy" must be a single value`),
		Entry("not a mapping", "\n- proxy\n", `/etc/gw.yaml line 2: expected lines such as "api-addr: 127.0.0.1:1323"`),
		Entry("not YAML", "proxy: \"a\n", "--config: /etc/gw.yaml is not YAML: line 2: found unexpected end of stream"),
	)

	It("is a file that does not exist", func() {
		_, _, err := given{env: []string{"GATEHOUSE_CONFIG=/not/there.yaml"}}.load()
		Expect(err).To(MatchError("--config: reading /not/there.yaml: file does not exist"))
	})

	DescribeTable("is a URL that cannot be an engine's metrics, and is not shown, because it may contain a password", func(text string) {
		_, _, err := given{flags: map[string]string{"ratelimit-address": "10.0.0.1:18001", "ratelimit-metrics": text}}.load()
		Expect(err).To(MatchError("--ratelimit-metrics: the value from the command line " +
			"is not a list of URLs such as http://ratelimit.internal:18004/metrics, without a user"))
	},
		Entry("no scheme", "10.0.0.1:18004"),
		Entry("another scheme", "unix:///run/metrics"),
		Entry("no host", "http:///metrics"),
		Entry("an invalid port", "http://a:0"),
		Entry("a port too high", "http://a:70000"),
		Entry("a user", "http://ann:hunter2@a"),
		Entry("an empty element in the list", "http://a,,http://b"),
		Entry("a bad escape", "http://a/%zz"),
	)

	DescribeTable("is a URL that cannot be a collector's, and is not shown", func(text string) {
		_, _, err := given{flags: map[string]string{"otlp-traces": text}}.load()
		Expect(err).To(MatchError("--otlp-traces: the value from the command line is not a URL such as " +
			"http://127.0.0.1:4318/v1/traces, without a user"))
	},
		Entry("no scheme", "collector:4318"),
		Entry("a user", "http://ann:hunter2@collector:4318"),
		Entry("a query", "http://collector:4318/v1/traces?key=hunter2"),
	)

	It("is a metrics URL without the engine's address", func() {
		_, _, err := given{env: []string{"GATEHOUSE_RATELIMIT_METRICS=http://a"}}.load()
		Expect(err).To(MatchError(`--ratelimit-metrics: "http://a" (from environment GATEHOUSE_RATELIMIT_METRICS) requires --ratelimit-address, ` +
			`the engine that Envoys call; set both`))
	})

	It("is the same port for both listeners", func() {
		_, _, err := given{env: []string{"GATEHOUSE_HTTP_PORT=8443"}}.load()
		Expect(err).To(MatchError(`--https-port: "8443" (from the default) is also --http-port; the two must differ`))
		_, _, err = given{flags: map[string]string{"https-port": "8080"}}.load()
		Expect(err).To(MatchError(`--https-port: "8080" (from the command line) is also --http-port; the two must differ`))
	})

	It("is a standalone Envoy without an admin endpoint", func() {
		g := given{flags: map[string]string{"admin-addr": ""}}
		_, _, err := g.load()
		Expect(err).To(MatchError(`--admin-addr: "" (from the command line) is not allowed here: the specification requires this port; port 0 means any free one`))
		g.command = config.Bootstrap
		Expect(g.mustLoad().AdminAddr).To(BeEmpty())
	})
})

var _ = Describe("The admin token", func() {
	const text = "hunter2-hunter2-hunter2"

	It("comes from a file or from the environment", func() {
		cfg := given{flags: map[string]string{"api-admin-token-file": "/etc/gw.yaml"}, file: " " + text + "\n"}.mustLoad()
		Expect(cfg.APIAdminToken).To(Equal(text))
		Expect(cfg.APIAdminTokenFile).To(Equal("/etc/gw.yaml"))
		g := given{env: []string{"GATEHOUSE_API_ADMIN_TOKEN=" + text}}
		cfg, warnings, err := g.load()
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
		Expect(cfg.APIAdminToken).To(Equal(text))
		g.command = config.Token
		Expect(g.mustLoad().APIAdminToken).To(BeEmpty())
	})

	DescribeTable("is refused, and not shown", func(g given, want string) {
		_, _, err := g.load()
		Expect(err).To(MatchError(want))
		Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
	},
		Entry("given twice", given{
			flags: map[string]string{"api-admin-token-file": "/etc/gw.yaml"}, file: text,
			env: []string{"GATEHOUSE_API_ADMIN_TOKEN=" + text},
		}, "--api-admin-token-file and environment GATEHOUSE_API_ADMIN_TOKEN are both given: give one"),
		Entry("no file", given{flags: map[string]string{"api-admin-token-file": "/not/there"}},
			"--api-admin-token-file: reading /not/there: file does not exist"),
		Entry("an empty file", given{flags: map[string]string{"api-admin-token-file": "/etc/gw.yaml"}, file: "\n"},
			"--api-admin-token-file: /etc/gw.yaml: the admin token has fewer than 16 characters; make one with: openssl rand -hex 32"),
		Entry("a short one", given{env: []string{"GATEHOUSE_API_ADMIN_TOKEN=hunter2"}},
			"environment GATEHOUSE_API_ADMIN_TOKEN: the admin token has fewer than 16 characters; make one with: openssl rand -hex 32"),
		Entry("two lines", given{flags: map[string]string{"api-admin-token-file": "/etc/gw.yaml"}, file: text + "\n" + text},
			"--api-admin-token-file: /etc/gw.yaml: the admin token may contain only visible ASCII characters, and no space"),
	)

	DescribeTable("cannot be set by a key in the file", func(key, nearest string) {
		_, _, err := given{flags: map[string]string{"config": "/etc/gw.yaml"}, file: key + ": " + text + "\n"}.load()
		Expect(err).To(MatchError(`/etc/gw.yaml line 1: "` + key + `" is not a setting; the nearest is "` + nearest + `"`))
	}, Entry(nil, "api-admin-token", "api-admin-token-file"))

	It("is not printed", func() {
		cfg := given{env: []string{"GATEHOUSE_API_ADMIN_TOKEN=" + text}}.mustLoad()
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			Expect(fmt.Sprintf(format, cfg)).NotTo(ContainSubstring("hunter2"))
		}
	})
})

var _ = Describe("TLS of the API", func() {
	It("needs both files", func() {
		for _, flag := range []string{"api-tls-cert", "api-tls-key"} {
			_, _, err := given{flags: map[string]string{flag: "/etc/gw.pem"}}.load()
			Expect(err).To(MatchError("--api-tls-cert and --api-tls-key belong together: set both or neither"))
		}
	})
})

var _ = DescribeTable("TLS of xDS is refused", func(flags map[string]string, want string) {
	_, _, err := given{flags: flags}.load()
	Expect(err).To(MatchError(want))
},
	Entry("with a certificate and no key", map[string]string{"xds-tls-cert": "/x"}, "--xds-tls-cert and --xds-tls-key belong together: set both or neither"),
	Entry("with a key and no certificate", map[string]string{"xds-tls-key": "/x"}, "--xds-tls-cert and --xds-tls-key belong together: set both or neither"),
	Entry("with authorities alone", map[string]string{"xds-tls-client-ca": "/x"},
		"--xds-tls-client-ca requires --xds-tls-cert and --xds-tls-key: Envoys present a certificate only to a server that has one"),
	Entry("with a revocation list but no authorities", map[string]string{"xds-tls-cert": "/x", "xds-tls-key": "/x", "xds-tls-client-crl": "/x"},
		"--xds-tls-client-crl requires --xds-tls-client-ca, whose certificates it revokes"),
)

var _ = Describe("Warnings", func() {
	It("name variables that have no effect, and not those of the tests", func() {
		_, warnings, err := given{env: []string{"GATEHOUSE_HTP_PORT=1", "GATEHOUSE_TEST_POSTGRES=x", "GATEHOUSE_CONFIG=", "GATEHOUSE_SERVER=x", "GATEHOUSE_TOKEN_FILE=x", "GATEHOUSE_CONTEXT=x"}}.load()
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(Equal([]string{
			"environment GATEHOUSE_HTP_PORT is not a setting and has no effect; the nearest is GATEHOUSE_HTTP_PORT",
		}))
	})
})

var _ = Describe("Printing", func() {
	It("hides user, password and query of the database URL", func() {
		cfg := given{flags: map[string]string{"database-url": "postgres://ann:hunter2@db:5432/gw?password=hunter2"}}.mustLoad()
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			Expect(fmt.Sprintf(format, cfg)).To(And(ContainSubstring("postgres://db:5432/gw "), Not(ContainSubstring("hunter2"))))
		}
		Expect(config.RedactURL("host=db password=hunter2")).To(Equal("<unreadable>"))
		Expect(config.RedactURL("")).To(BeEmpty())
		Expect(config.RedactURL("sqlite:///var/gw.db")).To(Equal("sqlite:///var/gw.db"))
	})
})

var _ = Describe("The table", func() {
	It("gives every setting a command, a usage and a variable that no test uses", func() {
		for _, command := range []string{config.Serve, config.Standalone, config.Bootstrap, config.Envoy, config.Token} {
			for _, s := range config.Settings(command) {
				Expect(s.Usage).NotTo(BeEmpty(), s.Name)
				Expect(s.Variable()).To(MatchRegexp("^GATEHOUSE_[A-Z_]+$"))
				Expect(s.Variable()).NotTo(HavePrefix("GATEHOUSE_TEST_"))
			}
		}
		Expect(config.Settings(config.Bootstrap)).To(HaveLen(18))
		Expect(config.Settings(config.Envoy)).To(HaveLen(21))
		Expect(config.Settings(config.Token)).To(HaveLen(2))
	})
})
