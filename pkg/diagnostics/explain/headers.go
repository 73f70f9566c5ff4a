package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// Envoy adds these for an unknown client.
const (
	someClient  = "127.0.0.1"
	someRequest = "00000000-0000-4000-8000-000000000000"
)

// headers are the headers of a request as routes match them, by name in lower case. A name
// has several values only if Envoy keeps them separate.
type headers map[string][]string

const authority = ":authority"

func (h headers) get(name string) string { return strings.Join(h[name], ",") }

// upgrade returns the protocol that the client requests, which may be empty, and whether it
// requests an upgrade. h2c does not count: Envoy ignores it.
func (h headers) upgrade() (protocol string, wanted bool) {
	protocol = strings.ToLower(h.get("upgrade"))
	wanted = h["upgrade"] != nil && protocol != "h2c" && slices.ContainsFunc(strings.Split(h.get("connection"), ","), func(t string) bool {
		return strings.EqualFold(strings.TrimSpace(t), "upgrade")
	})
	return protocol, wanted
}

// readHeaders checks what Envoy's HTTP/1.1 codec checks, with messages for the sender.
// target is the path of the request line, with the query.
func readHeaders(r Request, l *hcmv3.HttpConnectionManager) (headers, string) {
	switch {
	case !slices.Contains(methods(), r.Method):
		return nil, fmt.Sprintf("Envoy does not know the method %q (they are upper case)", r.Method)
	case strings.ContainsFunc(r.Target, isNotPrintable):
		return nil, fmt.Sprintf("the path %q contains a character that must be percent-encoded", r.Target)
	}
	h := headers{}
	underscores := l.GetCommonHttpProtocolOptions().GetHeadersWithUnderscoresAction()
	for _, line := range r.Headers {
		name, value := strings.ToLower(line.Name), strings.Trim(line.Value, " \t")
		switch {
		case name == "" || strings.ContainsFunc(name, isNoToken):
			return nil, fmt.Sprintf("%q is not a header name", line.Name)
		case strings.Contains(name, "_") && underscores == corev3.HttpProtocolOptions_DROP_HEADER:
			continue
		case strings.Contains(name, "_") && underscores == corev3.HttpProtocolOptions_REJECT_REQUEST:
			return nil, fmt.Sprintf("the name of header %q has an underscore, which many backends confuse with a dash", line.Name)
		case strings.ContainsFunc(value, isControl):
			return nil, fmt.Sprintf("the value of header %q contains a control character", line.Name)
		case name == "host":
			name = authority
		}
		before := h[name]
		switch {
		case !isJoined(name) || before == nil:
			h[name] = append(before, value)
		case before[0] == "" || value == "":
			h[name] = []string{before[0] + value}
		default:
			h[name] = []string{before[0] + "," + value}
		}
	}
	if _, wanted := h.upgrade(); !wanted {
		if problem := h.dropNominated(); problem != "" {
			return nil, problem
		}
	}
	if host := h.get(authority); strings.ContainsFunc(host, isNoAuthority) {
		return nil, fmt.Sprintf("the host %q contains a character that a host cannot have", host)
	}
	return h, ""
}

// dropNominated removes the headers that Connection names as meant for the proxy alone. The
// Host may be one of them.
func (h headers) dropNominated() string {
	const most = 10
	tokens := strings.Split(h.get("connection"), ",")
	if len(tokens) > most {
		return fmt.Sprintf("Connection has %d parts; more than %d are refused", len(tokens), most)
	}
	for _, token := range tokens {
		token = strings.ToLower(strings.TrimSpace(token))
		if strings.HasPrefix(token, ":") {
			token = authority
		}
		switch token {
		case authority, forwardedFor, "x-forwarded-host", "x-forwarded-proto":
			return fmt.Sprintf("Connection names %q, which must reach the upstream", token)
		case "host":
			delete(h, authority)
		case "te", "":
		default:
			delete(h, token)
		}
	}
	return ""
}

// applyEarlyMutation applies the listener's changes to a client's headers. They come before
// Envoy's own.
func (h headers) applyEarlyMutation(l *hcmv3.HttpConnectionManager) error {
	for _, extension := range l.GetEarlyHeaderMutationExtensions() {
		var list earlyv3.HeaderMutation
		if err := extension.GetTypedConfig().UnmarshalTo(&list); err != nil {
			return fmt.Errorf("decoding %q: %w", extension.GetName(), err)
		}
		for _, m := range list.GetMutations() {
			switch action := m.GetAction().(type) {
			case *mutationv3.HeaderMutation_Remove:
				delete(h, action.Remove)
			case *mutationv3.HeaderMutation_Append:
				// What is made of the headers of a trace (CEL) decides nothing here.
				if !strings.HasPrefix(action.Append.GetHeader().GetValue(), "%CEL(") {
					seam.Apply(h, m, "")
				}
			case *mutationv3.HeaderMutation_RemoveOnMatch_:
				for name := range h {
					matches, _, err := seam.Matches(action.RemoveOnMatch.GetKeyMatcher(), name)
					if err != nil {
						return err
					}
					if matches {
						delete(h, name)
					}
				}
			default:
				return fmt.Errorf("change of headers %T is not known", action)
			}
		}
	}
	return nil
}

// mutateRequestHeaders applies the changes before the choice of a route
// (ConnectionManagerUtility::mutateRequestHeaders). It removes what clients must not set and
// adds what Envoy knows. A proxy in front is trusted to know whether the client used TLS.
func (h headers) mutateRequestHeaders(r Request, path, client string, trusted bool) {
	for _, name := range hopByHopHeaders() {
		delete(h, name)
	}
	if _, wanted := h.upgrade(); !wanted {
		delete(h, "upgrade")
		delete(h, "connection")
		h.reduceTE()
	}
	scheme := "http"
	if r.TLS {
		scheme = "https"
	}
	proto := scheme
	if told, there := h["x-forwarded-proto"]; trusted && there {
		proto = told[0]
		if known := seam.LowerASCII(proto); known == "http" || known == "https" {
			scheme = known
		}
	}
	way := r.client()
	if before := h.get(forwardedFor); before != "" {
		way = before + "," + way
	}
	for name, value := range map[string]string{
		":method": r.Method, ":path": path, ":scheme": scheme, "x-forwarded-proto": proto, forwardedFor: way,
		"x-envoy-external-address": client, "x-request-id": someRequest,
	} {
		h[name] = []string{value}
	}
}

// reduceTE reduces TE to trailers (ConnectionManagerUtility::sanitizeTEHeader).
func (h headers) reduceTE() {
	te := h.get("te")
	switch {
	case te == "":
	case slices.ContainsFunc(strings.Split(te, ","), func(t string) bool { return strings.TrimSpace(t) == "trailers" }):
		h["te"] = []string{"trailers"}
	default:
		delete(h, "te")
	}
}

// methods returns the methods that Envoy's HTTP/1.1 codec accepts, except CONNECT, which has
// no path.
func methods() []string {
	return []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		http.MethodTrace, "ACL", "BIND", "CHECKOUT", "COPY", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "MSEARCH",
		"NOTIFY", "PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "UNBIND", "UNLINK", "UNLOCK",
		"UNSUBSCRIBE",
	}
}

// isJoined reports whether Envoy joins several lines of a header into one value. It compares
// the values of all other headers one by one.
func isJoined(name string) bool {
	return slices.Contains([]string{
		authority, "accept", "accept-encoding", "access-control-request-headers", "access-control-request-method",
		"authorization", "cache-control", "connection", "content-encoding", "content-type", "expect", "grpc-accept-encoding", "grpc-timeout",
		"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "referer", "te", "upgrade",
		"user-agent", "via", "x-client-trace-id", "x-envoy-attempt-count", "x-envoy-is-timeout-retry", "x-forwarded-for",
		"x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-request-id",
	}, name)
}

// hopByHopHeaders returns the headers that the listener removes from every request.
func hopByHopHeaders() []string {
	return []string{
		"keep-alive", "proxy-connection", "transfer-encoding", "x-forwarded-client-cert", "x-envoy-decorator-operation",
		"x-envoy-downstream-service-cluster", "x-envoy-downstream-service-node", "x-envoy-expected-rq-timeout-ms", "x-envoy-force-trace",
		"x-envoy-hedge-on-per-try-timeout", "x-envoy-internal", "x-envoy-ip-tags", "x-envoy-max-retries", "x-envoy-original-host",
		"x-envoy-original-path", "x-envoy-original-url", "x-envoy-retriable-header-names", "x-envoy-retriable-status-codes", "x-envoy-retry-grpc-on",
		"x-envoy-retry-on", "x-envoy-upstream-alt-stat-name", "x-envoy-upstream-rq-per-try-timeout-ms",
		"x-envoy-upstream-rq-timeout-alt-response", "x-envoy-upstream-rq-timeout-ms", "x-envoy-upstream-stream-duration-ms",
	}
}

func isNoToken(c rune) bool {
	return !strings.ContainsRune(alphanumeric+"!#$%&'*+-.^_`|~", c)
}

func isNoAuthority(c rune) bool {
	return !strings.ContainsRune(alphanumeric+"!$%&'()*+,-.:;=@[]_~", c)
}
