package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
)

// The commands that have settings.
const (
	Serve      = "serve"
	Standalone = "standalone"
	Bootstrap  = "bootstrap"
	Envoy      = "envoy"
	Token      = "token"
	SecretKey  = "secret-key"
	Backup     = "backup"
	Restore    = "restore"
	Ready      = "ready"
)

// FileFlag is the flag that names the settings file. It has an environment
// variable and no key in the file.
const FileFlag = "config"

// Setting is one row of the table of settings.
type Setting struct {
	// Name is the flag and the key in the file.
	Name string
	// Type is the word for its value in --help; "bool" takes no value.
	Type    string
	Default string
	// Usage is the text for --help.
	Usage string
	// allowed completes the sentence "<value> is not ...".
	allowed string
	// List says that a repeated flag adds to the list.
	List bool
	// secret says that the value may contain a password.
	secret   bool
	commands []string
	// set parses s into c. Users see allowed, not its error.
	set func(c *Config, s string) error
}

// Variable returns the environment variable of the setting.
func (s Setting) Variable() string { return variable(s.Name) }

func variable(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

const variablePrefix = "GATEHOUSE_"

// Settings returns the settings of a command, in the order of --help.
func Settings(command string) []Setting {
	return slices.DeleteFunc(table(), func(s Setting) bool { return !slices.Contains(s.commands, command) })
}

func table() []Setting {
	return slices.Concat(serverSettings(), xdsSettings(), planSettings(), rateLimitSettings(), upstreamSettings(),
		certificateSettings(), apiSettings(), consoleSettings(), diagnosticSettings(), proxySettings(), envoyFileSettings(),
		connectSettings(), kubernetesSettings())
}

func serverSettings() []Setting {
	servers, stores := []string{Serve, Standalone}, []string{Serve, Standalone, Token, SecretKey, Backup, Restore}
	return []Setting{
		{
			Name: "database-url", Type: "url", commands: stores, secret: true,
			Usage: "database: sqlite:///abs/path.db or postgres://user:password@host/name (default: " +
				"an SQLite file in --data-dir)",
			allowed: "a database URL such as sqlite:///abs/path.db or postgres://user:password@host:5432/name",
			set:     setter(func(c *Config) *string { return &c.DatabaseURL }, databaseURL),
		},
		{
			Name: "data-dir", Type: "directory", commands: stores,
			Usage:   "directory for the program's own files (default: gatehouse in $XDG_DATA_HOME or ~/.local/share)",
			allowed: "an absolute or relative path",
			set:     setter(func(c *Config) *string { return &c.DataDir }, anyText),
		},
		{
			Name: "api-addr", Type: "host:port", Default: "127.0.0.1:1323", commands: []string{Serve, Standalone, Ready},
			Usage:   "address of the REST API; port 0 means any free one",
			allowed: "an address HOST:PORT such as 127.0.0.1:1323",
			set:     setter(func(c *Config) *string { return &c.APIAddr }, listenAddr),
		},
		{
			Name: "xds-addr", Type: "host:port", Default: "127.0.0.1:18000",
			commands: []string{Serve, Standalone, Bootstrap, Envoy}, Usage: "address where Envoys fetch their configuration",
			allowed: "an address HOST:PORT such as 127.0.0.1:18000",
			set:     setter(func(c *Config) *string { return &c.XDSAddr }, listenAddr),
		},
		{
			Name: "schema-word", Type: "word", Default: "core_db", commands: servers,
			Usage:   "fixed word in the keys of API answers, as in insert_core_db_upstream",
			allowed: "a word of at most 63 letters, digits and underscores that starts with a letter",
			set:     setter(func(c *Config) *string { return &c.SchemaWord }, word),
		},
		{
			Name: "secret-key-file", Type: "file", commands: []string{Serve, Standalone, SecretKey, Backup, Restore},
			Usage: "file with the key that seals secrets; a server creates it if it is missing (default: " +
				"secret.key in --data-dir)",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.SecretKeyFile }, anyText),
		},
		{
			Name: "allow-empty", Type: "bool", Default: "false", commands: servers,
			Usage:   "answer Envoys even if the database seems to be lost: it is empty on purpose",
			allowed: "true or false",
			set:     setter(func(c *Config) *bool { return &c.AllowEmpty }, boolean),
		},
		{
			Name: "revision-keep-age", Type: "duration", Default: "720h", commands: servers,
			Usage:   "how long to keep revisions for history and rollback",
			allowed: "a duration of at least 1m such as 720h",
			set:     setter(func(c *Config) *time.Duration { return &c.RevisionKeepAge }, keepAge),
		},
		{
			Name: "revision-keep-entries", Type: "number", Default: "100000", commands: servers,
			Usage:   "how many changes of objects to keep for history and rollback",
			allowed: "a whole number from 1 to 100000000",
			set:     setter(func(c *Config) *int { return &c.RevisionKeepEntries }, keepEntries),
		},
		choice("access-log", servers, []string{"json", "off"}, "format of Envoy's access log on standard output",
			func(c *Config) *string { return &c.AccessLog }),
	}
}

// rateLimitSettings set who counts requests.
func rateLimitSettings() []Setting {
	servers := []string{Serve, Standalone}
	return []Setting{
		{
			Name: "ratelimit-address", Type: "host:port", commands: servers,
			Usage: "rate-limit engine that Envoys call; it fetches its limits from --xds-addr (default: none for serve, " +
				"standalone counts itself)",
			allowed: "an address HOST:PORT such as ratelimit.internal:18001",
			set:     setter(func(c *Config) *string { return &c.RateLimitAddress }, remoteAddr),
		},
		{
			Name: "ratelimit-metrics", Type: "urls", commands: servers, secret: true, // a URL with a user is refused
			Usage: "URLs of that engine's metrics, separated by commas, for the counts in the API; " +
				"all addresses of a name are read",
			allowed: "a list of URLs such as http://ratelimit.internal:18004/metrics, without a user",
			set:     setter(func(c *Config) *[]*url.URL { return &c.RateLimitMetrics }, metricsURLs),
		},
	}
}

// upstreamSettings set the addresses that traffic may go to.
func upstreamSettings() []Setting {
	servers := []string{Serve, Standalone}
	const allowed = "a list such as 10.0.0.0/8,192.0.2.1,api.example.com,*.shop.example"
	return []Setting{
		{
			Name: "upstream-allow", Type: "addresses", commands: servers,
			Usage:   "addresses that upstreams may have: networks, addresses and DNS names, separated by commas (default: all)",
			allowed: allowed,
			set:     setter(func(c *Config) *[]egress.Entry { return &c.UpstreamAllow }, addresses),
		},
		{
			Name: "upstream-deny", Type: "addresses", commands: servers,
			Usage: "addresses that upstreams must not have, even if --upstream-allow names them; " +
				"a DNS name is compared as a name",
			allowed: allowed,
			set:     setter(func(c *Config) *[]egress.Entry { return &c.UpstreamDeny }, addresses),
		},
		{
			Name: "upstream-sockets", Type: "directories", commands: servers,
			Usage: "directories, separated by commas, whose Unix sockets upstreams may be (default: none); " +
				"whoever may write to the API reaches every socket in them that Envoy can open",
			allowed: "a list of absolute paths such as /run/app,/run/shop",
			set:     setter(func(c *Config) *[]string { return &c.UpstreamSockets }, directories),
		},
		{
			Name: "allow-lua", Type: "bool", Default: "false", commands: servers,
			Usage:   "allow filters that run scripts (http_filter_lua): whoever may write to the API runs code in every Envoy",
			allowed: "true or false",
			set:     setter(func(c *Config) *bool { return &c.AllowLua }, boolean),
		},
		{
			Name: "provider-allow", Type: "addresses", commands: servers,
			Usage: "loopback, link-local and metadata-service addresses at which identity providers may be called, " +
				"or host names with such addresses; other addresses need no permission",
			allowed: allowed,
			set:     setter(func(c *Config) *[]egress.Entry { return &c.ProviderAllow }, addresses),
		},
		{
			Name: "acme-dns-exec", Type: "file", commands: servers,
			Usage: "program that writes records into DNS for automatic certificates (docs/certificates.md); no configuration can " +
				"name one (default: none)",
			allowed: "an absolute path of a program",
			set:     setter(func(c *Config) *string { return &c.ACMEDNSExec }, program),
		},
		{
			Name: "upstream-ca-file", Type: "file", commands: servers,
			Usage: "PEM file with the certificate authorities of TLS upstreams that name none (default: SSL_CERT_FILE, " +
				"or those of the system)",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.UpstreamCAFile }, anyText),
		},
	}
}

// planSettings bound what a change waits for before it reaches an Envoy.
func planSettings() []Setting {
	servers := []string{Serve, Standalone}
	return []Setting{
		{
			Name: "cluster-wait", Type: "duration", Default: "20s", commands: servers,
			Usage: "how long the change of a host waits until an Envoy has a new cluster ready (first health checks, DNS); " +
				"other hosts never wait",
			allowed: "a duration from 1s to 1h such as 20s",
			set:     setter(func(c *Config) *time.Duration { return &c.ClusterWait }, durationWithin(time.Second, time.Hour)),
		},
		{
			Name: "removal-grace", Type: "duration", Default: "2s", commands: servers,
			Usage: "how long a cluster stays in an Envoy after its last route is gone, " +
				"so that running requests and retries can end",
			allowed: "a duration from 1ms to 1h such as 2s",
			set: setter(func(c *Config) *time.Duration { return &c.RemovalGrace },
				durationWithin(time.Millisecond, time.Hour)),
		},
	}
}

// adminTokenVariable holds the admin token itself. It has no flag and no key:
// other users of the machine see command lines, and files are often shared.
const adminTokenVariable = "GATEHOUSE_API_ADMIN_TOKEN"

// certificateSettings set where certificates come from.
func certificateSettings() []Setting {
	return []Setting{{
		Name: "tls-dir", Type: "directory", commands: []string{Serve, Standalone},
		Usage: "directory of certificates and their keys, which become secrets and are followed: NAME.crt and NAME.key, " +
			"NAME/fullchain.pem and NAME/privkey.pem (certbot), NAME/tls.crt and NAME/tls.key (default: none)",
		allowed: "an absolute or relative path",
		set:     setter(func(c *Config) *string { return &c.TLSDir }, anyText),
	}}
}

// apiSettings set who may call the REST API, and how.
func apiSettings() []Setting {
	servers := []string{Serve, Standalone}
	return []Setting{
		{
			Name: "api-admin-token-file", Type: "file", commands: servers,
			Usage:   "file with the admin token of the REST API (or the token itself in " + adminTokenVariable + ")",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.APIAdminTokenFile }, anyText),
		},
		{
			Name: "insecure-api", Type: "bool", Default: "false", commands: servers,
			Usage: "allow an --api-addr that is not loopback while there is no token: " +
				"everybody who reaches the REST API can change everything",
			allowed: "true or false",
			set:     setter(func(c *Config) *bool { return &c.InsecureAPI }, boolean),
		},
		{
			Name: "api-hosts", Type: "names", commands: servers,
			Usage:   "host names of the REST API, separated by commas; addresses and localhost are always allowed",
			allowed: "a list of host names such as api.example.com,gateway.internal, without ports",
			set:     setter(func(c *Config) *[]string { return &c.APIHosts }, hostNames),
		},
		{
			Name: "api-tls-cert", Type: "file", commands: []string{Serve, Standalone, Ready},
			Usage:   "PEM file with the certificate chain of the REST API, which then speaks HTTPS; read again when it changes",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.APITLSCert }, anyText),
		},
		{
			Name: "api-tls-key", Type: "file", commands: servers,
			Usage:   "PEM file with the private key of --api-tls-cert",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.APITLSKey }, anyText),
		},
	}
}

// diagnosticSettings set what the program reports about itself.
func diagnosticSettings() []Setting {
	servers := []string{Serve, Standalone}
	level := choice("log-level", servers, []string{"debug", "info", "warn", "error"}, "lowest level to log",
		func(c *Config) *string { return &c.LogLevel })
	level.Default = "info"
	return []Setting{
		level,
		choice("log-format", servers, []string{"auto", "text", "json"},
			"format of the log; auto is text on a terminal, else json",
			func(c *Config) *string { return &c.LogFormat }),
		{
			Name: "debug-addr", Type: "ip:port", commands: servers,
			Usage: "loopback address of the debug server, which serves profiles of CPU and memory at /debug/pprof/; " +
				"port 0 means any free one (default: no debug server)",
			allowed: "a loopback address IP:PORT such as 127.0.0.1:6060: profiles show what the program does and holds, " +
				"so only this machine may read them (from elsewhere through ssh -L)",
			set: setter(func(c *Config) *string { return &c.DebugAddr }, loopbackAddr),
		},
		{
			Name: "otlp-traces", Type: "url", commands: servers, secret: true, // a URL with a user is refused
			Usage: "collector for spans of the control plane itself, from the call of the API to the Envoys " +
				"(OpenTelemetry, OTLP over HTTP; default: none)",
			allowed: "a URL such as http://127.0.0.1:4318/v1/traces, without a user",
			set:     setter(func(c *Config) *string { return &c.OTLPTraces }, collectorURL("/v1/traces")),
		},
		{
			Name: "otlp-metrics", Type: "url", commands: servers, secret: true,
			Usage:   "collector that the metrics of GET /metrics are sent to (OTLP over HTTP; default: none)",
			allowed: "a URL such as http://127.0.0.1:4318/v1/metrics, without a user",
			set:     setter(func(c *Config) *string { return &c.OTLPMetrics }, collectorURL("/v1/metrics")),
		},
	}
}

func proxySettings() []Setting {
	own := []string{Standalone}
	return []Setting{
		{
			Name: "proxy", Type: "name", Default: "gw", commands: []string{Standalone, Bootstrap, Envoy},
			Usage: "name of the proxy object whose configuration the Envoy receives",
			allowed: "a proxy name: 1 to 253 characters of A-Z a-z 0-9 . _ - and not the name of an API call (dump, copy, " +
				"deepcopy, copyroute)",
			set: setter(func(c *Config) *string { return &c.Proxy }, proxyName),
		},
		{
			Name: "envoy", Type: "file", commands: []string{Standalone, Envoy},
			Usage:   "the Envoy to run (default: next to the program, then in PATH)",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Envoy }, anyText),
		},
		{
			Name: "http-port", Type: "port", Default: "8080", commands: own,
			Usage: "port of the HTTP listener", allowed: "a port, 1 to 65535",
			set: setter(func(c *Config) *int { return &c.HTTPPort }, port),
		},
		{
			Name: "https-port", Type: "port", Default: "8443", commands: own,
			Usage: "port of the HTTPS listener, which exists once a service has a certificate", allowed: "a port, 1 to 65535",
			set: setter(func(c *Config) *int { return &c.HTTPSPort }, port),
		},
		{
			Name: "listen-ip", Type: "address", Default: "127.0.0.1", commands: own,
			Usage:   "address of the HTTP and HTTPS listeners; 0.0.0.0 for every network",
			allowed: "an IPv4 or IPv6 address",
			set:     setter(func(c *Config) *string { return &c.ListenIP }, ipAddress),
		},
		{
			Name: "trusted-hops", Type: "number", Default: "0", commands: own,
			Usage: "exact number of your own proxies in front of the gateway that append to X-Forwarded-For; " +
				"if the number is too high, clients can choose their address",
			allowed: "a whole number from 0 to 10",
			set:     setter(func(c *Config) *int { return &c.TrustedHops }, hops),
		},
		{
			Name: "admin-addr", Type: "host:port", Default: "127.0.0.1:9001",
			commands: []string{Standalone, Bootstrap, Envoy, Ready},
			Usage:    "address of the admin port: Envoy's admin paths that only read, and /logging; port 0 means any free one",
			allowed:  "an address IP:PORT such as 127.0.0.1:9001",
			set:      setter(func(c *Config) *string { return &c.AdminAddr }, ipPort),
		},
		{
			Name: "zone", Type: "name", commands: []string{Standalone, Bootstrap, Envoy},
			Usage:   "zone of the Envoy: upstreams with Upstream_zone_mincount prefer those of the same zone",
			allowed: "a name such as europe-west1-b: letters, digits, dots, underscores and hyphens",
			set: setter(func(c *Config) *string { return &c.Zone }, func(s string) (string, error) {
				return matching(s, `^[A-Za-z0-9._-]{0,253}$`)
			}),
		},
		{
			Name: "admin-socket", Type: "file", commands: []string{Bootstrap, Envoy, Ready},
			Usage: "Unix socket for Envoy's admin endpoint in place of --admin-addr: all paths, " +
				"only for the user that runs Envoy",
			allowed: "an absolute path of at most 107 bytes such as /run/envoy/admin.sock",
			set:     setter(func(c *Config) *string { return &c.AdminSocket }, socketPath),
		},
		{
			Name: "demo", Type: "bool", Default: "false", commands: own,
			Usage:   "run a small backend; if the store is empty, configure a first service and print the calls",
			allowed: "true or false",
			set:     setter(func(c *Config) *bool { return &c.Demo }, boolean),
		},
	}
}

// envoyFileSettings are files and directories of an Envoy that this program starts.
func envoyFileSettings() []Setting {
	return []Setting{
		{
			Name: "geoip-country", Type: "file", commands: []string{Standalone, Envoy},
			Usage: "database of countries in MaxMind's format, for filters that name countries; " +
				"the Envoy reads a checked copy, also of files that replace it",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.GeoIPCountry }, anyText),
		},
		{
			Name: "geoip-asn", Type: "file", commands: []string{Standalone, Envoy},
			Usage:   "database of networks (autonomous systems) in MaxMind's format, for filters that name networks",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.GeoIPASN }, anyText),
		},
		{
			Name: "access-log-dir", Type: "directory", commands: []string{Standalone, Envoy},
			Usage: "directory for access logs that go to files (file of globalconfig_accesslog); " +
				"SIGUSR1 has Envoy open them again",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.AccessLogDir }, anyText),
		},
	}
}

// choice returns a setting whose value is one of a few words; the first is the default.
func choice(name string, commands, words []string, usage string, field func(*Config) *string) Setting {
	return Setting{
		Name: name, Type: strings.Join(words, "|"), Default: words[0], commands: commands, Usage: usage,
		allowed: "one of " + strings.Join(words, ", "),
		set: setter(field, func(s string) (string, error) {
			if !slices.Contains(words, s) {
				return "", errNotAllowed
			}
			return s, nil
		}),
	}
}

// setter returns a set function from a field and the parser of its type.
func setter[T any](field func(*Config) *T, parse func(string) (T, error)) func(*Config, string) error {
	return func(c *Config, s string) error {
		v, err := parse(s)
		if err == nil {
			*field(c) = v
		}
		return err
	}
}
