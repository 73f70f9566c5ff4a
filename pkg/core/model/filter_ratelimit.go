package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RateLimitFilter says which attributes of a request are counted. A descriptor with several keys counts their
// combination.
// +page=ratelimit.md
// +or=StatedLimit
// +example={descriptors: [{remote_address: client}, {request_headers: {header_name: x-api-key, descriptor_key: api_key}}]}
type RateLimitFilter struct {
	// Counts in the globalconfig_ratelimit of this domain that applies to the proxy; absent means the first by name.
	// +minLength=1
	Domain string `json:"domain"`
	// Each descriptor counts by itself. Nested levels of descriptors change nothing.
	// +required
	// +anyOf=[{$ref: "#/components/schemas/RateLimitDescriptors"}, {$ref: "#/components/schemas/RateLimitNested"},
	// {type: array, minItems: 1, items: {$ref: "#/components/schemas/RateLimitNested"}}]
	Descriptors []RateLimitDescriptor `json:"descriptors"` // those schemas are written by hand, as readDescriptors is
	// Stated is the rule that the descriptors meet where the filter states its
	// limit itself, in StatedDomain; nil means that a global config has it.
	Stated *RateLimitRule `json:"-"`
}

// RateLimitDescriptor is counted as a whole: its entries, in order, are one key.
type RateLimitDescriptor []RateLimitEntry

// RateLimitEntry is one part of a descriptor, named like Envoy's own
// (config.route.v3.RateLimit.Action).
type RateLimitEntry struct {
	// Kind is one of rateLimitKinds.
	Kind string
	// Key and Value are the descriptor's; an empty Key means the kind's own
	// name.
	Key   string `json:"descriptor_key"`
	Value string `json:"descriptor_value"`
	// HeaderName and ParameterName name the header or query parameter.
	HeaderName string `json:"header_name"`
	// Claim is the claim of a verified token or id_token, with dots between its steps.
	Claim         string `json:"name"`
	ParameterName string `json:"query_parameter_name"`
	// SkipIfAbsent leaves the part out where the request has no such header or
	// parameter; else such a request is not counted by this descriptor.
	SkipIfAbsent bool `json:"skip_if_absent"`
	// V4Mask and V6Mask are the lengths of the prefixes of an address that
	// count as one; 0 means 32 and 64.
	V4Mask int `json:"v4_prefix_mask_len"`
	V6Mask int `json:"v6_prefix_mask_len"`
	// Headers must match, or with NoMatch not, for the value to be sent.
	Headers []ValueMatch `json:"headers"`
	NoMatch bool         `json:"no_match"`
}

// SentKey is the key that Envoy sends for the entry: its own, or that of the
// kind (config.route.v3.RateLimit.Action). A kind without descriptor_key has a
// fixed one.
func (e RateLimitEntry) SentKey() string {
	if e.Kind == "header_value_match" {
		return cmp.Or(e.Key, "header_match")
	}
	return cmp.Or(e.Key, e.Kind)
}

// rateLimitKinds are the attributes of a request that a filter can name, with
// the fields that each takes; the first of them is what a plain text means.
func rateLimitKinds() map[string][]string {
	return map[string][]string{
		"remote_address":        nil,
		"masked_remote_address": {"v4_prefix_mask_len", "v6_prefix_mask_len"},
		"generic_key":           {"descriptor_value", "descriptor_key"},
		"request_headers":       {"header_name", "descriptor_key", "skip_if_absent"},
		"query_parameters":      {"query_parameter_name", "descriptor_key", "skip_if_absent"},
		"header_value_match":    {"descriptor_value", "descriptor_key", "headers", "no_match"},
		"claim":                 {"name", "descriptor_key"},
		"api_client":            {"descriptor_key"},
		"consumer":              {"descriptor_key"},
		"path":                  {"descriptor_key"},
		"method":                {"descriptor_key"},
	}
}

// readRateLimitFilter reads the short form (see StatedLimit), or any of the
// three shapes of rest-api.md, which are descriptors, and descriptors within a
// level of descriptors, with or without a domain.
func readRateLimitFilter(v *validator, at, name string, config JSON) Spec {
	f := &RateLimitFilter{}
	names, _, _ := orderedObject(json.RawMessage(config.text())) // it is an object
	short, err := isShort(names)
	if err != nil {
		v.add(at, "%s", err)
		return f
	}
	if short {
		var s StatedLimit
		if v.decode(at, config, &s) {
			f.readStated(v, at, name, s)
		}
		return f
	}
	var c struct {
		Domain      *string         `json:"domain"`
		Descriptors json.RawMessage `json:"descriptors"`
	}
	if !v.decode(at, config, &c) {
		return f
	}
	if c.Domain != nil {
		if f.Domain = *c.Domain; f.Domain == "" {
			v.add(at+".domain", "must not be empty; omit it instead")
		}
		v.refuseStatedDomain(at+".domain", f.Domain)
	}
	f.Descriptors = readDescriptors(v, at+".descriptors", c.Descriptors, true)
	if n := len(f.Descriptors); n > maxDescriptors {
		v.add(at+".descriptors", "has %d descriptors; at most %d are allowed", n, maxDescriptors)
	}
	return f
}

func (f *RateLimitFilter) uses() []Key { return nil }

// maxDescriptors bounds the descriptors of a filter: an Envoy goes through all of them with each request.
const maxDescriptors = 1000

func readDescriptors(v *validator, at string, raw json.RawMessage, wrapped bool) (list []RateLimitDescriptor) {
	if wrapped && len(raw) > 0 && raw[0] == '{' {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	var objects []json.RawMessage
	if err := json.Unmarshal(raw, &objects); len(raw) == 0 || err != nil || len(objects) == 0 {
		v.add(at, `must be a list of at least one descriptor, such as [{"remote_address":"client"}]`)
		return nil
	}
	for i, object := range objects {
		at := fmt.Sprintf("%s[%d]", at, i)
		names, values, err := orderedObject(object)
		if err != nil || len(names) == 0 {
			v.add(at, `must be an object that names what to count, such as {"remote_address":"client"}`)
			continue
		}
		if wrapped && len(names) == 1 && names[0] == "descriptors" {
			list = append(list, readDescriptors(v, at+".descriptors", values[0], false)...)
			continue
		}
		var d RateLimitDescriptor
		for j, kind := range names {
			d = append(d, readRateLimitEntry(v, at, kind, values[j]))
		}
		list = append(list, d)
	}
	return list
}

// orderedObject reads a JSON object in the order in which it was written.
func orderedObject(raw json.RawMessage) (names []string, values []json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("is not an object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		text, _ := name.(string) // the name of a member is text
		names, values = append(names, text), append(values, value)
	}
	return names, values, nil
}

func readRateLimitEntry(v *validator, at, kind string, value json.RawMessage) RateLimitEntry {
	e := RateLimitEntry{Kind: kind}
	fields, known := rateLimitKinds()[kind]
	if !known {
		v.oneOf(at, kind, slices.Sorted(maps.Keys(rateLimitKinds())))
		return e
	}
	at += "." + kind
	switch value[0] {
	case '"':
		var text string
		_ = json.Unmarshal(value, &text) // it was read as JSON before
		e.text(text)
	case '{':
		names, _, _ := orderedObject(value) // likewise
		for _, name := range names {
			if !slices.Contains(fields, name) {
				v.add(at+"."+name, "is not a field of %s", kind)
			}
		}
		if err := json.Unmarshal(value, &e); err != nil {
			v.add(at, "%s", strings.TrimPrefix(err.Error(), "json: "))
		}
	default:
		v.add(at, "must be a string or an object")
		return e
	}
	e.validate(v, at)
	return e
}

// text takes what a plain text means for a kind. That of an address, an API client, a consumer, a path
// or a method is a remark (specification, "Rate-limit route filter").
func (e *RateLimitEntry) text(text string) {
	switch e.Kind {
	case "generic_key":
		e.Value = text
	case "request_headers":
		e.HeaderName, e.Key = text, text
	case "query_parameters":
		e.ParameterName, e.Key = text, text
	case "claim":
		e.Claim = text
	case "header_value_match":
		e.Value = text
	}
}

func (e *RateLimitEntry) validate(v *validator, at string) {
	need := func(field, value string) {
		if value == "" {
			v.add(at+"."+field, "is required")
		}
	}
	switch e.Kind {
	case "generic_key":
		need("descriptor_value", e.Value)
	case "request_headers":
		need("header_name", e.HeaderName)
		need("descriptor_key", e.Key)
		if e.HeaderName != "" && !strings.HasPrefix(e.HeaderName, ":") {
			v.token(at+".header_name", e.HeaderName)
		}
	case "claim":
		v.claim(at+".name", e.Claim)
	case "query_parameters":
		need("query_parameter_name", e.ParameterName)
		need("descriptor_key", e.Key)
	case "header_value_match":
		need("descriptor_value", e.Value)
		if len(e.Headers) == 0 {
			v.add(at+".headers", "is required: at least one condition")
		}
		for i, h := range e.Headers {
			h.validate(v, fmt.Sprintf("%s.headers[%d]", at, i))
		}
	case "masked_remote_address":
		v.checkRange(at+".v4_prefix_mask_len", e.V4Mask, 0, 32)
		v.checkRange(at+".v6_prefix_mask_len", e.V6Mask, 0, 128)
	}
}
