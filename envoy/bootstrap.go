package envoy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"
)

// Version is the Envoy that Gatehouse is made for and tested with.
const Version = "1.39.3"

// defaultMaxConnections bounds the memory that clients can use: an idle connection
// costs Envoy some tens of kB.
const defaultMaxConnections = 50_000

// reservedPrefix begins the names of metadata that the control plane reads.
const reservedPrefix = "gatehouse_"

// maxSocketPath is the longest path that fits in the address of a Unix socket.
const maxSocketPath = 107

//go:embed bootstrap.yaml.tmpl
var bootstrapTemplate string

// Params is what differs between the bootstraps of two Envoys.
type Params struct {
	// Node is the node id: the name of the proxy object whose configuration the Envoy
	// receives. It is also the node's cluster.
	Node string
	// XDSAddr is HOST:PORT of the control plane, an IP address or a DNS name.
	XDSAddr string
	// XDSSocket is the path of a Unix socket of the control plane, instead of XDSAddr.
	XDSSocket string
	// AdminAddr is IP:PORT of the admin endpoint; port 0 means any free one,
	// empty means none.
	AdminAddr string
	// AdminSocket is the path of a Unix socket for the admin endpoint, instead of
	// AdminAddr. All admin paths work there, because only this user can connect.
	AdminSocket string
	// MaxConnections is the maximum number of client connections at a time; 0 means
	// 50,000.
	MaxConnections int
	// MaxHeap is the maximum heap size in bytes, near which the Envoy accepts less
	// work; 0 means no limit.
	MaxHeap int64
	// Parent identifies the process that started the Envoy, which sends it in its node
	// metadata as gatehouse_parent; empty sends nothing.
	Parent string
	// Instance is the name of this Envoy among those of Node: no other one may have it. It is in the node metadata as
	// gatehouse_instance, so that the Envoy is recognized wherever it connects; empty sends nothing.
	Instance string
	// Zone is the zone of the Envoy, with which it compares those of upstreams; empty means unknown.
	Zone string
	// Metadata is additional node metadata, StatsTags are tags of every statistic. A
	// metadata key must not begin with "gatehouse_".
	Metadata, StatsTags map[string]string
	// Loopback requests listeners on the loopback address only.
	Loopback bool
	// CountryDatabase and ASNDatabase are absolute paths of files of MaxMind's format (.mmdb) that the Envoy can read;
	// empty means that it has none. Envoy ends if one cannot be read when a listener names it.
	CountryDatabase, ASNDatabase string
	// LogDir is the absolute path of a directory in which the Envoy can write access logs; empty means none.
	LogDir string
	// TLS says how the control plane and the Envoy authenticate to each other; nil
	// means no TLS.
	TLS *TLS
	// Token is the proxy token with which the Envoy authenticates; empty means none.
	// The bootstrap contains it in plain text.
	Token string
}

// AdminPaths returns the paths of an admin port, without the first slash: they show
// nothing confidential, and none of them stops Envoy.
func AdminPaths() []string {
	return []string{"certs", "clusters", "listeners", "logging", "memory", "ready", "server_info", "stats", "stats/prometheus"}
}

// address is an address in the form that the template needs.
type address struct {
	Host string
	Port int
}

// Bootstrap returns the configuration, in YAML, with which an Envoy connects to the
// control plane.
func Bootstrap(p Params) ([]byte, error) {
	if p.Node == "" || !isText(p.Node) {
		return nil, fmt.Errorf("node id %q must be text without control characters", p.Node)
	}
	xds, err := parseAddress(p.XDSAddr)
	if p.XDSSocket == "" && (err != nil || xds.Host == "" || xds.Port == 0) {
		return nil, fmt.Errorf("xDS address %q is not HOST:PORT such as 127.0.0.1:18000", p.XDSAddr)
	}
	in := struct {
		Params
		XDS        address
		XDSType    string
		Admin      *address
		AdminPaths string
		Metadata   map[string]string
		TLS        *tlsContext
	}{Params: p, XDS: xds, XDSType: "STRICT_DNS", AdminPaths: strings.Join(AdminPaths(), "|"), Metadata: nodeMetadata(p)}
	if in.MaxConnections == 0 {
		in.MaxConnections = defaultMaxConnections
	}
	if _, err := netip.ParseAddr(xds.Host); err == nil || p.XDSSocket != "" {
		in.XDSType = "STATIC"
	}
	if in.TLS, err = newTLSContext(p.TLS, xds.Host); err != nil {
		return nil, err
	}
	if err := checkTexts(p); err != nil {
		return nil, err
	}
	switch {
	case p.AdminSocket != "" && (!path.IsAbs(p.AdminSocket) || len(p.AdminSocket) > maxSocketPath || !isText(p.AdminSocket)):
		return nil, fmt.Errorf("admin socket %q is not an absolute path of at most %d bytes such as /run/envoy/admin.sock", p.AdminSocket, maxSocketPath)
	case p.AdminSocket != "":
	case p.AdminAddr != "":
		admin, err := parseAddress(p.AdminAddr)
		if _, notIP := netip.ParseAddr(admin.Host); err != nil || notIP != nil {
			return nil, fmt.Errorf("admin address %q is not IP:PORT such as 127.0.0.1:9001", p.AdminAddr)
		}
		in.Admin = &admin
	}

	t, err := template.New("bootstrap").Funcs(template.FuncMap{"quote": quote}).Parse(bootstrapTemplate)
	if err != nil {
		return nil, fmt.Errorf("parsing the bootstrap template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, in); err != nil {
		return nil, fmt.Errorf("writing the bootstrap of node %q: %w", p.Node, err)
	}
	return out.Bytes(), nil
}

// nodeMetadata returns what the Envoy tells the control plane about itself.
func nodeMetadata(p Params) map[string]string {
	all := map[string]string{}
	maps.Copy(all, p.Metadata)
	if p.Parent != "" {
		all[reservedPrefix+"parent"] = p.Parent
	}
	if p.Instance != "" {
		all[reservedPrefix+"instance"] = p.Instance
	}
	if p.Loopback {
		all[reservedPrefix+"listeners"] = "loopback"
	}
	if p.CountryDatabase != "" {
		all[reservedPrefix+"country_database"] = p.CountryDatabase
	}
	if p.ASNDatabase != "" {
		all[reservedPrefix+"asn_database"] = p.ASNDatabase
	}
	if p.LogDir != "" {
		all[reservedPrefix+"access_log_dir"] = p.LogDir
	}
	return all
}

// checkTexts refuses metadata, tags and tokens that Envoy would read as something else.
func checkTexts(p Params) error {
	for what, list := range map[string]map[string]string{"metadata": p.Metadata, "tag": p.StatsTags} {
		for name, value := range list {
			if name == "" || !isText(name) || !isText(value) {
				return fmt.Errorf("%s %q=%q must be text without control characters", what, name, value)
			}
		}
	}
	for what, text := range map[string]string{"zone": p.Zone, "directory for access logs": p.LogDir} {
		if !isText(text) {
			return fmt.Errorf("%s %q must be text without control characters", what, text)
		}
	}
	for name := range p.Metadata {
		if strings.HasPrefix(name, reservedPrefix) {
			return fmt.Errorf("metadata %q: names that begin with %q belong to the control plane", name, reservedPrefix)
		}
	}
	if !isToken(p.Token) {
		return errors.New("expected a token of letters, digits and -._~+/= only")
	}
	return nil
}

// isToken reports whether a text has only the characters of RFC 6750. It keeps out what
// a header cannot contain, and "%", which begins a substitution in Envoy.
func isToken(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
	})
}

// isText reports whether a text is valid UTF-8 without control characters.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// quote returns a JSON string, which is a double-quoted string in YAML.
func quote(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

func parseAddress(s string) (address, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return address{}, err
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) {
		return address{}, errors.New("not a host")
	}
	return address{host, int(n)}, nil
}
