package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Connect says how an Envoy outside this process finds its control plane and
// authenticates there, and which limits it has.
type Connect struct {
	// TLSCA is a PEM file with the authorities of the control plane's certificate;
	// empty means no TLS.
	TLSCA string
	// TLSCert and TLSKey are PEM files with the Envoy's own certificate.
	TLSCert, TLSKey string
	// TLSServerName is the name that the control plane's certificate must contain;
	// empty means the host of XDSAddr.
	TLSServerName string
	// TokenFile has a proxy token.
	TokenFile string
	// SDSDir is a directory for the files through which Envoy watches certificates.
	SDSDir string
	// Sidecar puts listeners on the loopback address only.
	Sidecar bool
	// Instance is the name of the Envoy among those of its proxy; empty means that it has none, or for the command
	// envoy one that is made at each start.
	Instance string
	// NodeMetadata and StatsTags describe the Envoy.
	NodeMetadata, StatsTags map[string]string
	// MaxHeap is in bytes; 0 means no limit.
	MaxHeap int64
	// MaxConnections is the maximum number of client connections at a time.
	MaxConnections int
	// Format is yaml or json.
	Format string
	// DrainTime is how long running requests may take when the Envoy is told to stop; 0
	// means that it stops immediately.
	DrainTime time.Duration
}

// connectSettings are the settings of the commands that connect an Envoy. Here
// --xds-tls-cert and --xds-tls-key are the Envoy's own; for the servers they are the
// xDS port's.
func connectSettings() []Setting {
	both := []string{Bootstrap, Envoy}
	return append(envoySettings(both), []Setting{
		{
			Name: "xds-tls-ca", Type: "file", commands: both,
			Usage: "PEM file with the authorities of the control plane's certificate; " +
				"Envoy then connects with TLS (default: plain text)",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Connect.TLSCA }, anyText),
		},
		{
			Name: "xds-tls-cert", Type: "file", commands: both,
			Usage:   "PEM file with the certificate with which this Envoy proves that it serves --proxy",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Connect.TLSCert }, anyText),
		},
		{
			Name: "xds-tls-key", Type: "file", commands: both,
			Usage:   "PEM file with the private key of --xds-tls-cert",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Connect.TLSKey }, anyText),
		},
		{
			Name: "xds-tls-server-name", Type: "name", commands: both,
			Usage:   "DNS name or IP address that the control plane's certificate must be for (default: the host of --xds-addr)",
			allowed: "a DNS name or an IP address",
			set:     setter(func(c *Config) *string { return &c.Connect.TLSServerName }, serverName),
		},
		{
			Name: "xds-token-file", Type: "file", commands: both,
			Usage:   `file with a token of --proxy: the "token" of the answer of POST /proxy/NAME/token, in one line`,
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Connect.TokenFile }, anyText),
		},
		{
			Name: "sds-dir", Type: "directory", commands: []string{Bootstrap},
			Usage: "existing directory for two small files with which Envoy follows the files of --xds-tls-*; without it, " +
				"Envoy reads them when it starts",
			allowed: "an absolute or relative path",
			set:     setter(func(c *Config) *string { return &c.Connect.SDSDir }, anyText),
		},
		choice("format", []string{Bootstrap}, []string{"yaml", "json"}, "format of the output",
			func(c *Config) *string { return &c.Connect.Format }),
		{
			Name: "drain-time", Type: "duration", Default: "0s", commands: []string{Envoy},
			Usage: "how long running requests may take after SIGTERM; with 0s, " +
				"the Envoy takes the place of this program and cuts them",
			allowed: "a duration from 0s to 1h such as 10s",
			set:     setter(func(c *Config) *time.Duration { return &c.Connect.DrainTime }, durationWithin(0, time.Hour)),
		},
	}...)
}

// envoySettings describe the Envoy and its limits.
func envoySettings(both []string) []Setting {
	return []Setting{
		{
			Name: "sidecar", Type: "bool", Default: "false", commands: both,
			Usage:   "listen on the loopback only, whatever Listen_ip the proxy has",
			allowed: "true or false",
			set:     setter(func(c *Config) *bool { return &c.Connect.Sidecar }, boolean),
		},
		{
			Name: "instance", Type: "name", commands: both,
			Usage: "name of this Envoy, which no other Envoy of the proxy has: " +
				"control planes recognize it when it connects to another one " +
				"(default: bootstrap none, because several Envoys may use one bootstrap; envoy a random one)",
			allowed: "letters, digits, dots, underscores and hyphens, at most 64",
			set:     setter(func(c *Config) *string { return &c.Connect.Instance }, instance),
		},
		{
			Name: "node-metadata", Type: "name=value", commands: both, List: true,
			Usage:   "metadata of the Envoy's node, separated by commas or given again",
			allowed: `a list such as zone=a,build=7; names do not begin with "gatehouse_"`,
			set:     setter(func(c *Config) *map[string]string { return &c.Connect.NodeMetadata }, metadata),
		},
		{
			Name: "stats-tags", Type: "name=value", commands: both, List: true,
			Usage:   "tags of every statistic of the Envoy, separated by commas or given again",
			allowed: "a list such as zone=a,cluster=edge; names have letters, digits and underscores",
			set:     setter(func(c *Config) *map[string]string { return &c.Connect.StatsTags }, tags),
		},
		{
			Name: "max-heap", Type: "size", commands: both,
			Usage: "heap of the Envoy at which it accepts no more work: 503 for requests above 95%, " +
				"no new connections above 98% (default: no limit)",
			allowed: "a size of at least 16MiB such as 512MiB or 2GiB",
			set:     setter(func(c *Config) *int64 { return &c.Connect.MaxHeap }, size),
		},
		{
			Name: "max-connections", Type: "number", Default: "50000", commands: both,
			Usage:   "maximum number of client connections; further ones are closed",
			allowed: "a whole number from 1 to 10000000",
			set:     setter(func(c *Config) *int { return &c.Connect.MaxConnections }, wholeWithin(1, 10_000_000)),
		},
	}
}

// completeConnect checks the settings that depend on each other.
func (c *Config) completeConnect() error {
	t := c.Connect
	switch {
	case (t.TLSCert == "") != (t.TLSKey == ""):
		return fmt.Errorf("--xds-tls-cert and --xds-tls-key belong together: set both or neither")
	case t.TLSCA == "" && t.TLSCert+t.TLSServerName+t.SDSDir != "":
		return fmt.Errorf("--xds-tls-cert, --xds-tls-server-name and --sds-dir need --xds-tls-ca: " +
			"the authorities with which Envoy verifies its control plane")
	}
	return nil
}

// serverName accepts a name that a certificate can contain, or nothing.
func serverName(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	if _, err := ipAddress(s); err == nil {
		return s, nil
	}
	return matching(s, `^[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})$`)
}

// instance accepts a short name, or nothing.
func instance(s string) (string, error) {
	return matching(s, `^[A-Za-z0-9._-]{0,64}$`)
}

// metadata reads a comma-separated list; empty means none.
func metadata(s string) (map[string]string, error) {
	return pairs(s, func(name string) bool { return !strings.HasPrefix(name, "gatehouse_") })
}

// tags reads a comma-separated list of names that are valid as Prometheus labels.
func tags(s string) (map[string]string, error) {
	return pairs(s, func(name string) bool {
		_, err := matching(name, `^[A-Za-z_][A-Za-z0-9_]*$`)
		return err == nil
	})
}

func pairs(s string, allowed func(name string) bool) (map[string]string, error) {
	if s == "" {
		return nil, nil
	}
	list := map[string]string{}
	for one := range strings.SplitSeq(s, ",") {
		name, text, found := strings.Cut(strings.TrimSpace(one), "=")
		if _, twice := list[name]; !found || name == "" || twice || !isText(one) || !allowed(name) {
			return nil, errNotAllowed
		}
		list[name] = text
	}
	return list, nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

// minHeap is less than any Envoy needs: a smaller value is a mistake.
const minHeap = 16 << 20

// size reads a number of bytes; empty means no limit.
func size(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	shift := 0
	for unit, by := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if number, found := strings.CutSuffix(s, unit); found {
			s, shift = number, by
		}
	}
	n, err := strconv.ParseUint(s, 10, 63-30)
	if err != nil || n<<shift < minHeap {
		return 0, errNotAllowed
	}
	return int64(n << shift), nil //nolint:gosec // less than 2^63
}

// wholeWithin returns the parser of an integer from low to high.
func wholeWithin(low, high int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return 0, errNotAllowed
		}
		return n, nil
	}
}
