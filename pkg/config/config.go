package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Config is the settings of one run. Settings that the command does not have
// stay at their defaults.
type Config struct {
	// DatabaseURL is sqlite:///abs/path.db or postgres://...; empty means a
	// SQLite file in DataDir. It may hold a password: log Config, not this.
	DatabaseURL string
	// DataDir is where the program keeps its files. It need not exist yet.
	DataDir string
	// APIAddr and XDSAddr are HOST:PORT; port 0 means any free one.
	APIAddr, XDSAddr string
	// SchemaWord is the fixed word in response keys, "core_db" in the
	// specification.
	SchemaWord string
	// LogLevel is debug, info, warn or error.
	LogLevel string
	// LogFormat is text, json, or auto: text on a terminal, else json.
	LogFormat string
	// AccessLog is json or off: what Envoys write about each request.
	AccessLog string

	// Proxy is the name of the gateway's own proxy object and its node id.
	Proxy string
	// Envoy is the path of the Envoy to supervise; empty means that it is
	// looked for beside the program and then in PATH.
	Envoy string
	// HTTPPort and HTTPSPort are the ports of the gateway's own listeners.
	HTTPPort, HTTPSPort int
	// ListenIP is the address of those listeners.
	ListenIP string
	// AdminAddr is HOST:PORT of Envoy's admin endpoint.
	AdminAddr string
	// Demo asks for a backend and a first configuration.
	Demo bool

	// Explicit holds the names of the settings that were given, in whichever
	// way, as against left at their defaults.
	Explicit map[string]bool
}

// ReadFile is os.ReadFile or a stand-in.
type ReadFile func(name string) ([]byte, error)

// Load finds the settings of a command: flags holds the flags that were given,
// environ the environment as os.Environ gives it. The warnings are for the log;
// an error is one line for the user.
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
	return cfg, append(unknownVariables(env), cfg.warnings(command)...), nil
}

// complete fills in what depends on the environment and checks what depends on
// more than one setting.
func (c *Config) complete(command string, env map[string]string, sources map[string]value) error {
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(env)
	}
	stores := slices.ContainsFunc(Settings(command), func(s Setting) bool { return s.Name == "data-dir" })
	if stores && c.DataDir == "" && c.DatabaseURL == "" {
		return fmt.Errorf("--data-dir: not given, and neither HOME nor XDG_DATA_HOME is set; give a directory, or --database-url")
	}
	if v, given := sources["admin-addr"]; given && c.AdminAddr == "" && command == Standalone {
		return fmt.Errorf("--admin-addr: %q (from %s) is not possible here: the program watches its Envoy there; port 0 means any free one", v.text, v.from)
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

// defaultDataDir follows the XDG base directory specification, which says to
// ignore a relative path. Empty means that there is none.
func defaultDataDir(env map[string]string) string {
	if dir := env["XDG_DATA_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "gatehouse")
	}
	if home := env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "gatehouse")
	}
	return ""
}

func (c *Config) warnings(command string) []string {
	if command == Bootstrap {
		return nil
	}
	var list []string
	for _, a := range []struct{ flag, addr, what string }{
		{"api-addr", c.APIAddr, "the REST API"},
		{"xds-addr", c.XDSAddr, "the configuration of every proxy"},
	} {
		if !isLoopback(a.addr) {
			list = append(list, fmt.Sprintf("--%s %s is not a loopback address: whoever reaches it has %s without a password", a.flag, a.addr, a.what))
		}
	}
	return list
}

func isLoopback(addr string) bool {
	host, err := hostOf(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// LogValue keeps passwords out of the log.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("database_url", RedactURL(c.DatabaseURL)),
		slog.String("data_dir", c.DataDir),
		slog.String("api_addr", c.APIAddr),
		slog.String("xds_addr", c.XDSAddr),
		slog.String("proxy", c.Proxy),
		slog.String("listen_ip", c.ListenIP),
		slog.Int("http_port", c.HTTPPort),
		slog.Int("https_port", c.HTTPSPort),
		slog.String("admin_addr", c.AdminAddr),
	)
}

// String keeps passwords out of what is printed.
func (c Config) String() string { return c.LogValue().String() }

// GoString does the same for %#v.
func (c Config) GoString() string { return c.String() }

// RedactURL returns a database URL without its user, password and query. What
// is not a URL becomes "<unreadable>", for it may hold a password too.
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
