package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Spec is the configuration of a filter or global config as a Go value: each
// type has its own.
type Spec interface {
	// uses lists the objects that the configuration names.
	uses() []Key
}

// configType says what a filter or a global config of one type is.
type configType struct {
	name string
	// on lists the kinds that it can be attached to.
	on []Kind
	// notOnProxy is why a filter of the type cannot be attached to a proxy, in words that follow "a filter of this type";
	// empty means that it can, for all services of the proxy.
	notOnProxy string
	// alone is what only one filter of a service or route can do, of this type or another; empty means
	// that several of the type may be there.
	alone string
	// addsUp means that filters of the type on a service apply beside those of its routes. Otherwise those of a route
	// replace them.
	addsUp bool
	// joins means the same for a type whose filters of a service reach the requests of a route in another way than by
	// being added to the route: Envoy joins them, or they are on each route anyway.
	joins bool
	// secrets are the paths in its JSON whose text is stored sealed. Of a list of objects each has a name.
	secrets []string
	// names are the paths in its JSON whose text is the name of an object, with the kind of the
	// object: those that the uses of its Spec are, and the logs of a route_filter_accesslog.
	names map[string]Kind
	// read reads the JSON object of the filter or global config called name, as
	// far as that is possible, and reports what is wrong with it; at begins each
	// field's name.
	read func(v *validator, at, name string, config JSON) Spec
}

func filterTypes() []configType {
	return []configType{
		{name: FilterRateLimit, on: []Kind{KindRoute, KindService}, joins: true, read: readRateLimitFilter},
		{name: FilterOIDC, on: []Kind{KindService}, notOnProxy: "names one redirect URL and one set of cookies: a globalconfig_oauth is the login for a proxy", secrets: []string{clientSecretKey}, names: oidcNames(), read: readOIDC},
		{
			name: FilterJWT, on: []Kind{KindRoute, KindService}, secrets: jwtSecrets(), names: jwtNames(),
			read: readJWT,
		},
		{
			name: FilterAPIKey, on: []Kind{KindRoute, KindService}, alone: "say which API keys are accepted",
			names: map[string]Kind{"keys": KindKeySet}, read: readAPIKey,
		},
		{
			name: FilterBasicAuth, on: []Kind{KindRoute, KindService}, secrets: []string{passwordKey},
			names: map[string]Kind{passwordKey + ".secret": KindSecret}, read: readBasicAuth,
		},
		{
			name: FilterAnyOf, on: []Kind{KindRoute, KindService},
			secrets: anyOfSecrets(), names: anyOfNames(), read: readAnyOf,
		},
		{
			name: FilterConsumer, on: []Kind{KindRoute, KindService}, alone: "say which consumers are accepted", read: readConsumer,
		},
		{
			name: FilterRBAC, on: []Kind{KindRoute, KindService}, addsUp: true,
			names: map[string]Kind{"allow.address_lists": KindList, "deny.address_lists": KindList}, read: readRBAC,
		},
		{
			name: FilterExtAuthz, on: []Kind{KindRoute, KindService}, alone: "name the server that decides",
			names: serverNames(), read: readExtAuthz,
		},
		{
			name: FilterExtProc, on: []Kind{KindRoute, KindService}, alone: "name the server that processes requests",
			names: serverNames(), read: readExtProc,
		},
		{
			name: FilterHeaders, on: []Kind{KindRoute, KindService}, joins: true,
			names: map[string]Kind{"lists": KindList}, read: readHeadersFilter,
		},
		{
			name: FilterIPAccess, on: []Kind{KindRoute, KindService}, addsUp: true,
			names: map[string]Kind{"allow_lists": KindList, "deny_lists": KindList}, read: readIPAccess,
		},
		{name: FilterAffinity, on: []Kind{KindRoute, KindService}, notOnProxy: ofUpstreams, read: readAffinity},
		{name: FilterCanary, on: []Kind{KindRoute, KindService}, notOnProxy: ofUpstreams, names: canaryNames(), read: readCanary},
		{name: FilterMirror, on: []Kind{KindRoute, KindService}, notOnProxy: ofUpstreams, names: mirrorNames(), read: readMirror},
		{name: FilterHostRewrite, on: []Kind{KindRoute, KindService}, notOnProxy: ofUpstreams, read: readHostRewrite},
		{name: FilterCORS, on: []Kind{KindRoute, KindService}, alone: "say which pages may read the answers", read: readCORS},
		{name: FilterCSRF, on: []Kind{KindRoute, KindService}, addsUp: true, read: readCSRF},
		{name: FilterRequestID, on: []Kind{KindRoute, KindService}, alone: "choose the request ID", read: readRequestID},
		{name: FilterTracing, on: []Kind{KindRoute, KindService}, read: readTracingFilter},
		{
			name: FilterAccessLog, on: []Kind{KindRoute, KindService}, alone: "choose the logs",
			names: map[string]Kind{"logs": KindGlobalConfig}, read: readAccessLogFilter,
		},
		{name: FilterRedirect, on: []Kind{KindRoute, KindService}, notOnProxy: "answers requests in place of the services", alone: answering, read: readRedirect},
		{name: FilterDirectResponse, on: []Kind{KindRoute, KindService}, notOnProxy: "answers requests in place of the services, unlike a vh_filter_maintenance, which tells clients when to return", alone: answering, read: readDirectResponse},
		{name: FilterBodyLimit, on: []Kind{KindRoute, KindService}, read: readBodyLimit},
		{name: FilterCompress, on: []Kind{KindRoute, KindService}, read: readCompress},
		{name: FilterErrorPage, on: []Kind{KindRoute, KindService}, read: readErrorPage},
		{name: FilterFault, on: []Kind{KindRoute, KindService}, read: readFault},
		{name: FilterMaintenance, on: []Kind{KindService}, names: map[string]Kind{"except_lists": KindList}, read: readMaintenance},
		{name: FilterLua, on: []Kind{KindRoute, KindService}, names: luaNames(), read: readLua},
		{name: FilterGRPCWeb, on: []Kind{KindRoute, KindService}, read: readGRPCWeb},
		{name: FilterGRPCJSON, on: []Kind{KindRoute, KindService}, notOnProxy: "has the descriptors of one gRPC service", read: readGRPCJSON},
	}
}

// ofUpstreams is why some types are not for proxies.
const ofUpstreams = "is about the upstreams of one service"

func globalConfigTypes() []configType {
	return []configType{
		{name: GlobalConfigRateLimit, on: []Kind{KindProxy}, read: readRateLimitConfig},
		{name: GlobalConfigOAuth, on: []Kind{KindProxy}, names: oauthNames(), read: readOAuth},
		{name: GlobalConfigGlobals, on: []Kind{KindProxy}, read: readGlobals},
		{name: GlobalConfigAccessLog, on: []Kind{KindProxy}, names: collectorNames(), read: readAccessLog},
		{name: GlobalConfigTracing, on: []Kind{KindProxy}, names: collectorNames(), read: readTracing},
		{name: GlobalConfigRefusals, on: []Kind{KindProxy}, read: readRefusals},
		{name: GlobalConfigProxyProtocol, on: []Kind{KindProxy}, read: readProxyProtocol},
		{name: GlobalConfigConnections, on: []Kind{KindProxy}, read: readConnections},
		{name: GlobalConfigGeoIP, on: []Kind{KindProxy}, read: readGeoIP},
		{name: GlobalConfigMetrics, on: []Kind{KindProxy}, read: readMetrics},
		{
			name: GlobalConfigACME, on: []Kind{KindProxy}, secrets: []string{hmacKey, dnsToken},
			names: map[string]Kind{"ca_certificate": KindSecret, "dns.ca_certificate": KindSecret}, read: readACME,
		},
	}
}

// laterTypes are the types of rest-api.md that this version refuses, since it
// would not do what they say.
func laterTypes() []string {
	return []string{
		"http_filter_accesslog",
		"http_filter_healthcheck",
	}
}

// fieldTypes are types of rest-api.md whose settings are fields of an object, with the hint that names them.
func fieldTypes() map[string]string {
	const has = "is not a filter: set the upstream's fields "
	return map[string]string{
		"route_filter_circuitbreakers": has + "Upstream_max_connections, Upstream_max_pending, " +
			"Upstream_max_requests and Upstream_max_retries",
		"route_filter_outlierdetection": has + "Upstream_outlier_thresholdcount, " +
			"Upstream_outlier_ejectionseconds and Upstream_panic_thresholdpercent",
	}
}

// The types of filters and global configs.
const (
	FilterBodyLimit           = "route_filter_bodylimit"
	FilterCompress            = "route_filter_compress"
	FilterErrorPage           = "route_filter_errorpage"
	FilterAccessLog           = "route_filter_accesslog"
	FilterAPIKey              = "http_filter_apikey"
	FilterBasicAuth           = "http_filter_basicauth"
	FilterAnyOf               = "http_filter_anyof"
	FilterConsumer            = "http_filter_consumer"
	FilterAffinity            = "route_filter_affinity"
	FilterCanary              = "route_filter_canary"
	FilterMirror              = "route_filter_mirror"
	FilterCORS                = "vh_filter_cors"
	FilterCSRF                = "http_filter_csrf"
	FilterDirectResponse      = "route_filter_directresponse"
	FilterFault               = "route_filter_fault"
	FilterExtAuthz            = "http_filter_extauthz"
	FilterExtProc             = "http_filter_extproc"
	FilterGRPCJSON            = "http_filter_grpcjson"
	FilterGRPCWeb             = "http_filter_grpcweb"
	FilterHeaders             = "route_filter_headers"
	FilterHostRewrite         = "route_filter_host_rewrite"
	FilterIPAccess            = "vh_filter_ipaccess"
	FilterJWT                 = "http_filter_jwt"
	FilterMaintenance         = "vh_filter_maintenance"
	FilterRBAC                = "vh_filter_rbac"
	FilterRequestID           = "http_filter_requestid"
	FilterLua                 = "http_filter_lua"
	FilterRateLimit           = "route_filter_ratelimit"
	FilterRedirect            = "route_filter_redirect"
	FilterOIDC                = "http_filter_oidc"
	FilterTracing             = "route_filter_tracing"
	GlobalConfigRateLimit     = "globalconfig_ratelimit"
	GlobalConfigOAuth         = "globalconfig_oauth"
	GlobalConfigGlobals       = "globalconfig_globals"
	GlobalConfigTracing       = "globalconfig_tracing"
	GlobalConfigAccessLog     = "globalconfig_accesslog"
	GlobalConfigRefusals      = "globalconfig_refusals"
	GlobalConfigProxyProtocol = "globalconfig_proxyprotocol"
	GlobalConfigConnections   = "globalconfig_connections"
	GlobalConfigGeoIP         = "globalconfig_geoip"
	GlobalConfigMetrics       = "globalconfig_metrics"
	GlobalConfigACME          = "globalconfig_acme"
)

// ConfigTypes lists the types of filters, of global configs or of lists.
func ConfigTypes(kind Kind) []string { return typeNames(typesOf(kind)) }

func typesOf(kind Kind) []configType {
	switch kind {
	case KindGlobalConfig:
		return globalConfigTypes()
	case KindList:
		return listTypes()
	}
	return filterTypes()
}

// answering is what a route does that has no need of an upstream.
const answering = "answer"

// Answers reports whether a route with a filter of a type answers by itself.
func Answers(filterType string) bool { return Alone(filterType) == answering }

// Alone is what only one filter of a service or route can do, if one of the type does it; empty
// means that there may be several.
func Alone(filterType string) string {
	t, _ := findType(filterTypes(), filterType)
	return t.alone
}

// AddsUp reports whether filters of a type on a service apply beside those of its routes. Otherwise those of a route
// replace them.
func AddsUp(filterType string) bool {
	t, _ := findType(filterTypes(), filterType)
	return t.addsUp
}

// typeNames lists the types.
func typeNames(types []configType) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.name
	}
	return names
}

// config checks the type of a filter or global config and reads its JSON; nil
// where that is not possible.
func (v *validator) config(typeField, configField, name, typeName string, config JSON, types []configType) Spec {
	switch t, ok := findType(types, typeName); {
	case ok && config.text()[0] == '{':
		v.exactKeys(configField, config, t.secrets)
		return t.read(v, configField, name, config)
	case ok:
		v.add(configField, "must be a JSON object")
	case typeName == "":
		v.add(typeField, "is required")
	case fieldTypes()[typeName] != "":
		v.add(typeField, "%q %s", typeName, fieldTypes()[typeName])
	case slices.Contains(laterTypes(), typeName):
		v.add(typeField, "%q is not supported yet", typeName)
	default:
		v.unknownType(typeField, typeName, types)
	}
	return nil
}

// fault is the first thing that is wrong, or nil.
func (v *validator) fault() error {
	if len(v.errs) == 0 {
		return nil
	}
	return errors.New(v.errs[0].Field + " " + v.errs[0].Message)
}

// decode reads the JSON into into; what does not fit is reported.
func (v *validator) decode(at string, config JSON, into any) bool {
	err := decodeStrict(config.text(), into)
	embedded := strings.NewReplacer("LoginOptions.", "", "TokenIssuer.", "")
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is && wrong.Field != "" {
		v.add(at+"."+embedded.Replace(wrong.Field), "must be %s, not %s", jsonType(wrong.Type),
			sentType(wrong.Value))
		return false
	}
	if err != nil {
		v.add(at, "%s", err)
	}
	return err == nil
}

// jsonType says what a Go type is in JSON.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint32:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "an object"
	}
}

// sentType is what encoding/json says of a value, in a sentence: number 1.5 is a number.
func sentType(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	if kind == "bool" {
		return "true or false"
	}
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// sealConfig seals the secret texts of the JSON. place begins the place that
// they are sealed for.
func sealConfig(s Sealer, t configType, config, stored JSON, place, field string) (JSON, error) {
	had := map[string]string{}
	if stored != "" {
		if _, err := mapStrings(stored, func(at textField, text string) (string, error) {
			had[at.named] = text
			return text, nil
		}); err != nil {
			return "", fmt.Errorf("reading what is stored: %w", err)
		}
	}
	var bad []FieldError
	sealed, err := mapStrings(config, func(at textField, text string) (string, error) {
		message := ""
		switch {
		case slices.Contains(t.secrets, at.path):
			var err error
			if text, message, err = sealText(s, text, had[at.named], place+"/"+at.named); err != nil {
				return "", err
			}
		case IsSealed(text):
			message = "is not a secret; write it in plain text"
		}
		if message != "" {
			bad = append(bad, FieldError{Field: field + "." + at.named, Message: message})
		}
		return text, nil
	})
	if err != nil {
		return "", fmt.Errorf("sealing %s: %w", place, err)
	}
	return sealed, invalid(bad)
}

// mapNames returns the JSON with each name of an object replaced by what change says for it. Keys
// are told apart as Go does when it reads them: without regard to case.
func (t configType) mapNames(config JSON, change func(path, name string, kind Kind) string) (JSON, error) {
	return mapStrings(config, func(at textField, text string) (string, error) {
		for path, kind := range t.names {
			if strings.EqualFold(path, at.path) {
				return change(path, text, kind), nil
			}
		}
		return text, nil
	})
}

func invalid(fields []FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Message: "a secret cannot be stored", Hint: "see errors", Fields: fields}
}

// mapSealed replaces the sealed texts of the JSON.
func mapSealed(config JSON, place string, change func(sealed, place string) (string, error)) (JSON, error) {
	return mapStrings(config, func(at textField, text string) (string, error) {
		if !IsSealed(text) {
			return text, nil
		}
		return change(text, place+"/"+at.named)
	})
}
