package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
)

// Config is the settings of one run. Settings that the command does not have keep their
// defaults.
type Config struct {
	// DatabaseURL is sqlite:///abs/path.db or postgres://...; empty means an SQLite
	// file in DataDir. It may contain a password: log Config instead.
	DatabaseURL string
	// DataDir is where the program keeps its files. It need not exist yet.
	DataDir string
	// APIAddr and XDSAddr are HOST:PORT; port 0 means any free one.
	APIAddr, XDSAddr string
	// APIAdminTokenFile is the file that APIAdminToken was read from; empty if it was
	// set otherwise.
	APIAdminTokenFile string
	// APIAdminToken is the admin token of the API; empty means none.
	APIAdminToken string
	// AllowLua allows filters that run scripts in Envoy.
	AllowLua bool
	// InsecureAPI opens the API on any address while there is no token.
	InsecureAPI bool
	// APIHosts are host names of the API in addition to localhost, in lower case.
	APIHosts []string
	// APITLSCert and APITLSKey are PEM files; with both, the API uses HTTPS.
	APITLSCert, APITLSKey string
	// Console says who may sign in to the console besides holders of tokens.
	Console ConsoleOIDC
	// XDSTLSCert and XDSTLSKey are PEM files; with both, the xDS port uses TLS.
	// XDSTLSClientCA has the authorities of its clients, XDSTLSClientCRL their
	// revocation lists; empty means none.
	XDSTLSCert, XDSTLSKey, XDSTLSClientCA, XDSTLSClientCRL string
	// InsecureXDS accepts clients that do not authenticate.
	InsecureXDS bool
	// SecretKeyFile has the key that seals secrets; empty means secret.key in DataDir.
	SecretKeyFile string
	// RevisionKeepAge and RevisionKeepEntries bound the history.
	RevisionKeepAge     time.Duration
	RevisionKeepEntries int
	// ClusterWait is how long a host waits for a new cluster, and RemovalGrace
	// how long a cluster outlives its last route.
	ClusterWait, RemovalGrace time.Duration
	// UpstreamAllow and UpstreamDeny are the addresses that upstreams may have
	// and must not have.
	UpstreamAllow, UpstreamDeny []egress.Entry
	// UpstreamSockets are the directories whose Unix sockets upstreams may be.
	UpstreamSockets []string
	// ProviderAllow are special addresses that identity providers may have.
	ProviderAllow []egress.Entry
	// ACMEDNSExec is the program that writes records into DNS; empty means none.
	ACMEDNSExec string
	// UpstreamCAFile has the certificate authorities for upstreams that name none, in
	// PEM; empty means those of the system.
	UpstreamCAFile string
	// TLSDir is a directory whose certificates become secrets; empty means none.
	TLSDir string
	// AllowEmpty says that a database without a configuration is intended to be empty.
	AllowEmpty bool
	// SchemaWord is the fixed word in response keys, "core_db" in the
	// specification.
	SchemaWord string
	// LogLevel is debug, info, warn or error.
	LogLevel string
	// LogFormat is text, json, or auto: text on a terminal, otherwise json.
	LogFormat string
	// AccessLog is json or off: the access log of Envoys.
	AccessLog string
	// DebugAddr is the IP:PORT of the debug server, which serves profiles; always a
	// loopback address. Empty means no debug server.
	DebugAddr string
	// OTLPTraces and OTLPMetrics are where spans and metrics of the control plane itself are sent; empty means nowhere.
	OTLPTraces, OTLPMetrics string

	// RateLimitAddress is the HOST:PORT of the rate-limit engine. If it is empty,
	// standalone counts itself, and with serve nothing is limited.
	RateLimitAddress string
	// RateLimitMetrics are the URLs of the metrics of that engine's replicas.
	RateLimitMetrics []*url.URL

	// Proxy is the name of the gateway's own proxy object, and its node id.
	Proxy string
	// Envoy is the path of the Envoy to supervise. If it is empty, the Envoy is
	// searched for next to the program and then in PATH.
	Envoy string
	// HTTPPort and HTTPSPort are the ports of the gateway's own listeners.
	HTTPPort, HTTPSPort int
	// ListenIP is the address of those listeners.
	ListenIP string
	// TrustedHops is the number of trusted proxies in front of those listeners.
	TrustedHops int
	// Zone is the zone of the Envoy; empty means unknown.
	Zone string
	// GeoIPCountry and GeoIPASN are files that say where addresses are; empty means none.
	GeoIPCountry, GeoIPASN string
	// AccessLogDir is where Envoy may write access logs to files; empty means nowhere.
	AccessLogDir string
	// AdminAddr is HOST:PORT of Envoy's admin endpoint.
	AdminAddr string
	// AdminSocket is the path of a Unix socket that replaces it; empty means none.
	AdminSocket string
	// Connect says how to connect an Envoy outside this process.
	Connect Connect
	// Mode is ModeREST or ModeKubernetes: the source of serve's configuration.
	Mode string
	// Kubernetes says what serve reads in ModeKubernetes.
	Kubernetes Kubernetes
	// Demo starts a backend and writes a first configuration.
	Demo bool

	// Explicit has the names of the settings that were set, rather than left at their
	// defaults.
	Explicit map[string]bool
}

// ReadFile is os.ReadFile or a substitute.
type ReadFile func(name string) ([]byte, error)

// Load returns the settings of a command. flags are the flags that were set, and
// environ is the environment as os.Environ returns it. The warnings are for the log; an
// error is one line for the user.
func Load(command string, flags map[string]string, environ []string, readFile ReadFile) (Config, []string, error) {
	env := environment(environ)
	layers := []layer{{}, envLayer(env), flagLayer(flags)}
	path := layers[2].values[FileFlag].text
	if path == "" {
		path = layers[1].values[FileFlag].text
	}
	if path != "" {
		file, err := fileLayer(path, readFile)
		if err != nil {
			return Config{}, nil, err
		}
		layers[0] = file
	}

	cfg := Config{Explicit: map[string]bool{}}
	sources := map[string]value{}
	for _, s := range Settings(command) {
		if err := s.set(&cfg, s.Default); err != nil {
			return Config{}, nil, fmt.Errorf("setting --%s to its default %q: %w", s.Name, s.Default, err)
		}
		for _, l := range layers {
			v, ok := l.values[s.Name]
			if !ok {
				continue
			}
			sources[s.Name] = v
		}
		v, ok := sources[s.Name]
		if !ok {
			continue
		}
		if err := s.set(&cfg, v.text); err != nil {
			return Config{}, nil, badSetting(s, v)
		}
		cfg.Explicit[s.Name] = true
	}
	if err := cfg.complete(command, env, sources); err != nil {
		return Config{}, nil, err
	}
	if command == Serve || command == Standalone {
		if err := cfg.completeAPI(env, readFile); err != nil {
			return Config{}, nil, err
		}
		if err := cfg.completeConsole(env, readFile); err != nil {
			return Config{}, nil, err
		}
		if err := cfg.checkXDS(); err != nil {
			return Config{}, nil, err
		}
		if err := cfg.checkMode(env, sources); err != nil {
			return Config{}, nil, err
		}
	}
	return cfg, unknownVariables(env), nil
}

// complete fills in what depends on the environment and checks what depends on
// more than one setting.
func (c *Config) complete(command string, env map[string]string, sources map[string]value) error {
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(env)
	}
	stores := slices.ContainsFunc(Settings(command), func(s Setting) bool { return s.Name == "data-dir" })
	if stores && c.DataDir == "" && c.DatabaseURL == "" {
		return fmt.Errorf("--data-dir: not given, and neither HOME nor XDG_DATA_HOME is set; give a directory, " +
			"or --database-url")
	}
	if v, given := sources["admin-addr"]; given && c.AdminAddr == "" && command == Standalone {
		return fmt.Errorf("--admin-addr: %q (from %s) is not allowed here: the specification requires this port; "+
			"port 0 means any free one", v.text, v.from)
	}
	if v, given := sources["ratelimit-metrics"]; given && len(c.RateLimitMetrics) > 0 && c.RateLimitAddress == "" {
		return fmt.Errorf("--ratelimit-metrics: %q (from %s) requires --ratelimit-address, the engine that Envoys call; "+
			"set both", v.text, v.from)
	}
	if err := c.completeConnect(); err != nil {
		return err
	}
	if c.HTTPPort != 0 && c.HTTPPort == c.HTTPSPort {
		v, ok := sources["https-port"]
		if !ok {
			v = value{text: fmt.Sprint(c.HTTPSPort), from: "the default"}
		}
		return fmt.Errorf("--https-port: %q (from %s) is also --http-port; the two must differ", v.text, v.from)
	}
	return nil
}

// completeAPI reads the admin token and checks the settings of TLS.
func (c *Config) completeAPI(env map[string]string, readFile ReadFile) error {
	if (c.APITLSCert == "") != (c.APITLSKey == "") {
		return fmt.Errorf("--api-tls-cert and --api-tls-key belong together: set both or neither")
	}
	token, from := env[adminTokenVariable], "environment "+adminTokenVariable
	if c.APIAdminTokenFile != "" {
		if token != "" {
			return fmt.Errorf("--api-admin-token-file and environment %s are both given: give one", adminTokenVariable)
		}
		data, err := readFile(c.APIAdminTokenFile)
		if err != nil {
			return fmt.Errorf("--api-admin-token-file: reading %s: %w", c.APIAdminTokenFile, pathCause(err))
		}
		token, from = strings.TrimSpace(string(data)), "--api-admin-token-file: "+c.APIAdminTokenFile
	} else if token == "" {
		return nil
	}
	if err := adminToken(token); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	c.APIAdminToken = token
	return nil
}

// defaultDataDir follows the XDG base directory specification, which says to ignore a
// relative path. Empty means that there is no default.
func defaultDataDir(env map[string]string) string {
	if dir := env["XDG_DATA_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "gatehouse")
	}
	if home := env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "gatehouse")
	}
	return ""
}

// LogValue omits passwords from the log.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("database_url", RedactURL(c.DatabaseURL)),
		slog.String("data_dir", c.DataDir),
		slog.String("api_addr", c.APIAddr),
		slog.Bool("allow_lua", c.AllowLua),
		slog.Bool("insecure_api", c.InsecureAPI),
		slog.String("console_oidc_issuer", c.Console.Issuer),
		slog.String("xds_addr", c.XDSAddr),
		slog.Bool("insecure_xds", c.InsecureXDS),
		slog.String("proxy", c.Proxy),
		slog.String("listen_ip", c.ListenIP),
		slog.Int("http_port", c.HTTPPort),
		slog.Int("https_port", c.HTTPSPort),
		slog.String("admin_addr", c.AdminAddr),
	)
}

// String omits passwords, too.
func (c Config) String() string { return c.LogValue().String() }

// GoString does the same for %#v.
func (c Config) GoString() string { return c.String() }

// RedactURL returns a database URL without its user, password and query. A text that is
// not a URL becomes "<unreadable>", because it may contain a password too.
func RedactURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Scheme == "" {
		return "<unreadable>"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
}
