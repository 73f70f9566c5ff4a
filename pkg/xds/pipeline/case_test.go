package pipeline_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// caseSettings are the process settings that a case needs, named after the flags.
// The zero value means no access log, no rate-limit engine and no lists.
type caseSettings struct {
	AccessLog bool `json:"access_log"`
	// RateLimitSocket is the Unix socket of the engine in standalone,
	// RateLimitAddress the HOST:PORT of another engine.
	RateLimitSocket  string   `json:"ratelimit_socket"`
	RateLimitAddress string   `json:"ratelimit_address"`
	UpstreamAllow    []string `json:"upstream_allow"`
	UpstreamDeny     []string `json:"upstream_deny"`
	UpstreamSockets  []string `json:"upstream_sockets"`
	AllowLua         bool     `json:"allow_lua"`
	// NoAuthorities means that the system has no certificate authorities.
	NoAuthorities bool `json:"no_authorities"`
}

// systemAuthorities are the system's authorities in all cases.
const systemAuthorities = `-----BEGIN CERTIFICATE-----
MIIBhjCCAS2gAwIBAgIUCIPTzvfLsOH5BfqBQVtN+T9jZoEwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwHhcNMjYxMTIxMTQ0MzMxWhcNNDYx
MTE2MTQ0MzMxWjAZMRcwFQYDVQQDDA50ZXN0IGF1dGhvcml0eTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABLOyxFHVB2GtRFV0a5nNDwSQsndV7DCxb19bvD8SYiRN
lwsokrcF0/zIZQ/QDbqb2hrSsGIrgUOfrKYhS4PXAT6jUzBRMB0GA1UdDgQWBBTW
Q0IezK0dkzVob1BDcFyTHgKqFDAfBgNVHSMEGDAWgBTWQ0IezK0dkzVob1BDcFyT
HgKqFDAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIBT3JK0UGnzK
7rWvmh/0OZNfx/UZX343CY9jol+Wq6eCAiAMboeTWbAwz6f4eJMJ3rpYpDjcFc56
ovBTyVpb6JNfcQ==
-----END CERTIFICATE-----
`

func (s caseSettings) compile() compile.Settings {
	GinkgoHelper()
	entries := func(texts []string) (list []egress.Entry) {
		for _, text := range texts {
			e, err := egress.ParseEntry(text)
			Expect(err).NotTo(HaveOccurred())
			list = append(list, e)
		}
		return list
	}
	authorities := systemAuthorities
	if s.NoAuthorities {
		authorities = ""
	}
	return compile.Settings{
		Open: keyOf, Authorities: authorities,
		AccessLog: s.AccessLog, RateLimitSocket: s.RateLimitSocket, RateLimitAddress: s.RateLimitAddress,
		Lua: s.AllowLua, Upstreams: egress.Lists{Allow: entries(s.UpstreamAllow), Deny: entries(s.UpstreamDeny), Sockets: s.UpstreamSockets},
	}
}

// keyOf returns the key of a secret. No case contains one: the key is derived from the
// place for which it is sealed, and the certificates of the cases were made for it.
func keyOf(sealed, place string) (string, error) {
	if text, is := strings.CutPrefix(sealed, "sealed:v1:text:"); is { // what must be one line
		return text, nil
	}
	sum := sha256.Sum256([]byte(place))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
}

// caseInput is the content of in.yaml: settings, and objects by kind in the form
// of the REST API. IDs follow the order in the file.
type caseInput struct {
	Settings caseSettings
	Change   model.Change
}

func readInput(path string) caseInput {
	GinkgoHelper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this test
	Expect(err).NotTo(HaveOccurred())
	in := caseInput{Change: model.Change{Revision: 1, Full: true}}
	// unchecked turns validation off, for objects that only a database edited by
	// hand can contain.
	var unchecked bool
	sections := map[string]json.RawMessage{}
	Expect(yaml.UnmarshalStrict(text, &sections)).To(Succeed(), path)
	rest := map[string][]json.RawMessage{}
	for name, section := range sections {
		switch name {
		case "settings":
			decodeStrict(section, &in.Settings)
		case "unchecked":
			decodeStrict(section, &unchecked)
		case "learned":
			var learned map[string]model.Providers
			decodeStrict(section, &learned)
			in.Change.Learned = map[model.Key]model.Providers{}
			for of, all := range learned {
				kind, name, _ := strings.Cut(of, "/")
				in.Change.Learned[model.NewKey(model.Kind(kind), name)] = all
			}
		case "automatic":
			var automatic map[string]*model.Automatic
			decodeStrict(section, &automatic)
			in.Change.Automatic = map[model.Key]*model.Automatic{}
			for service, a := range automatic {
				in.Change.Automatic[model.ServiceKey(service)] = a
			}
		case "endpoints":
			var endpoints map[string][]model.Endpoint
			decodeStrict(section, &endpoints)
			in.Change.Endpoints = map[model.Key]*model.Endpoints{}
			for upstream, list := range endpoints {
				in.Change.Endpoints[model.UpstreamKey(upstream)] = model.NewEndpoints(list...)
			}
		default:
			var list []json.RawMessage
			decodeStrict(section, &list)
			rest[name] = list
		}
	}
	for _, kind := range model.Kinds() {
		for i, raw := range rest[string(kind)] {
			obj := readObject(kind, raw)
			*obj.Meta().ID = int64(i + 1)
			if !unchecked {
				Expect(obj.Validate()).To(BeEmpty(), "%s: %s", path, raw)
			}
			in.Change.Entries = append(in.Change.Entries, model.Entry{Key: obj.Key(), Object: obj})
		}
		delete(rest, string(kind))
	}
	Expect(rest).To(BeEmpty(), "%s has sections that are not a kind", path)
	return in
}

// readObject decodes an object. A link can be written as its names, shop/root/blue. The
// JSON of a filter or global config can be text, which keeps the order of its keys.
func readObject(kind model.Kind, raw json.RawMessage) model.Object {
	GinkgoHelper()
	obj := model.New(kind)
	if raw[0] == '"' {
		raw = linkOf(kind, raw)
	}
	var fields map[string]json.RawMessage
	decodeStrict(raw, &fields)
	for _, name := range []string{"filter_config", "config"} {
		if config := fields[name]; len(config) > 0 && config[0] == '"' {
			var text string
			decodeStrict(config, &text)
			fields[name] = json.RawMessage(text)
		}
	}
	if config := fields["route_config"]; config != nil { // as the store reads it, see RouteConfig.Unreadable
		Expect(obj.(*model.Route).Config.Scan([]byte(config))).To(Succeed())
		delete(fields, "route_config")
	}
	raw, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	decodeStrict(raw, obj)
	return obj
}

func linkOf(kind model.Kind, raw json.RawMessage) json.RawMessage {
	GinkgoHelper()
	var text string
	decodeStrict(raw, &text)
	names := map[string]string{}
	words := map[model.Kind][]string{
		model.KindRouteUpstream:     {"service", "route", "upstream"},
		model.KindRouteFilter:       {"service", "route", "filter"},
		model.KindServiceFilter:     {"service", "filter"},
		model.KindServiceSecret:     {"service", "secret"},
		model.KindProxyService:      {"proxy", "service"},
		model.KindProxyFilter:       {"proxy", "filter"},
		model.KindProxyGlobalConfig: {"proxy", "globalconfig"},
	}[kind]
	parts := strings.Split(text, "/")
	Expect(parts).To(HaveLen(len(words)), "%s: %s", kind, text)
	for i, word := range words {
		names[word+"_name"] = parts[i]
	}
	link, err := json.Marshal(names)
	Expect(err).NotTo(HaveOccurred())
	return link
}

func decodeStrict(raw json.RawMessage, into any) {
	GinkgoHelper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	Expect(dec.Decode(into)).To(Succeed(), "%s", raw)
}
