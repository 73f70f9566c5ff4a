package model

import (
	"encoding/base64"
	"regexp"
	"slices"
)

// GRPCJSONFilter converts requests with JSON to calls of gRPC services, by the google.api.http rules of the services,
// and their answers to JSON. A route's filter replaces its service's.
// +page=grpcjson.md
// +example={services: [shop.Books], auto_mapping: true, descriptor_set: CksKCnNob3AucHJvdG8SBHNob3AiBgoEQm9vazInCgVCb29rcxIeCgRQaW5nEgouc2hvcC5Cb29rGgouc2hvcC5Cb29rYgZwcm90bzM=}
type GRPCJSONFilter struct {
	// The services and all their imports, in base64, as protoc --include_imports --descriptor_set_out=FILE writes
	// them: at most 262144 bytes before base64.
	// +required
	// +minLength=1
	DescriptorSet string `json:"descriptor_set"`
	// Full names of the services that requests call.
	// +required
	// +minItems=1
	// +maxItems=maxGRPCServices
	Services []string `json:"services"`
	// A method without a rule is called by POST /PACKAGE.SERVICE/METHOD, with its whole message in the body.
	AutoMapping bool `json:"auto_mapping,omitempty"`
	// What happens to a request that no rule matches: 404, or it is forwarded unchanged. Default: reject.
	// +enum=[GRPCJSONReject, GRPCJSONPass]
	UnknownPaths string `json:"unknown_paths,omitempty"`
	// What happens to a query parameter that is not a field of the message: 400, or it is ignored. Default: reject.
	// +enum=[GRPCJSONReject, GRPCJSONIgnore]
	UnknownParameters string `json:"unknown_query_parameters,omitempty"`
	// Query parameters that are ignored if they are not fields, such as utm_source.
	// +maxItems=maxGRPCServices
	IgnoredParameters []string `json:"ignored_query_parameters,omitempty"`
	// An error of the service has its google.rpc.Status as the body, in addition to the HTTP status. Default: true.
	ConvertStatus *bool `json:"convert_grpc_status,omitempty"`
	// How messages are written.
	Print GRPCJSONPrint `json:"print_options"`
	// The maximum size of a request body, in bytes; a larger body gets 413. Default: 4194304.
	// +minimum=1
	// +maximum=maxBodyLimit
	MaxRequestBytes int `json:"max_request_body_size,omitempty"`
	// The maximum size of a message in an answer, in bytes; a larger message becomes 500. Default: 4194304.
	// +minimum=1
	// +maximum=maxBodyLimit
	MaxResponseBytes int `json:"max_response_body_size,omitempty"`
}

// GRPCJSONPrint says how messages are written.
type GRPCJSONPrint struct {
	// Add lines and indents.
	Whitespace bool `json:"add_whitespace,omitempty"`
	// Write fields with a zero value too.
	Zeros bool `json:"always_print_primitive_fields,omitempty"`
	// Write enums as numbers.
	EnumNumbers bool `json:"always_print_enums_as_ints,omitempty"`
	// Use the field names of the .proto files, such as in_stock, not inStock.
	ProtoNames bool `json:"preserve_proto_field_names,omitempty"`
	// Write a stream as one message in each line, not as an array.
	Lines bool `json:"stream_newline_delimited,omitempty"`
}

// What becomes of what no rule and no field is for.
const (
	GRPCJSONReject = "reject"
	GRPCJSONPass   = "pass"
	GRPCJSONIgnore = "ignore"
)

const (
	// maxDescriptorSet is in bytes: each route with the filter has it in the route configuration, which is sent as a
	// whole, and an Envoy reads it again at each change.
	maxDescriptorSet = 262144
	maxGRPCServices  = 100
	// defaultMessage is what gRPC libraries take by default.
	defaultMessage = 4 << 20
)

func readGRPCJSON(v *validator, at, _ string, config JSON) Spec {
	f := GRPCJSONFilter{
		UnknownPaths: GRPCJSONReject, UnknownParameters: GRPCJSONReject, MaxRequestBytes: defaultMessage,
		MaxResponseBytes: defaultMessage,
	}
	if !v.decode(at, config, &f) {
		return &f
	}
	set, err := base64.StdEncoding.DecodeString(f.DescriptorSet)
	switch {
	case f.DescriptorSet == "":
		v.add(at+".descriptor_set", "is required; make it with protoc --include_imports --descriptor_set_out=FILE, "+
			"and encode FILE in base64")
	case err != nil:
		v.add(at+".descriptor_set", "is not base64: %s", err)
	case len(set) > maxDescriptorSet:
		v.add(at+".descriptor_set", "has %d bytes; at most %d are allowed. "+
			"Leave out services that are not called this way, and --include_source_info", len(set), maxDescriptorSet)
	}
	f.checkServices(v, at+".services")
	if len(f.IgnoredParameters) > maxGRPCServices {
		v.add(at+".ignored_query_parameters", "has %d entries; at most %d are allowed", len(f.IgnoredParameters),
			maxGRPCServices)
	}
	v.oneOf(at+".unknown_paths", f.UnknownPaths, []string{GRPCJSONReject, GRPCJSONPass})
	v.oneOf(at+".unknown_query_parameters", f.UnknownParameters, []string{GRPCJSONReject, GRPCJSONIgnore})
	v.checkRange(at+".max_request_body_size", f.MaxRequestBytes, 1, maxBodyLimit)
	v.checkRange(at+".max_response_body_size", f.MaxResponseBytes, 1, maxBodyLimit)
	return &f
}

func (f *GRPCJSONFilter) checkServices(v *validator, field string) {
	switch n := len(f.Services); {
	case n == 0:
		v.add(field, `is required; name the services that requests call, such as ["shop.Books"]`)
	case n > maxGRPCServices:
		v.add(field, "has %d entries; at most %d are allowed", n, maxGRPCServices)
	}
	for i, name := range f.Services {
		switch {
		case !fullName.MatchString(name):
			v.add(field, "%q is not the full name of a service, such as shop.Books", name)
		case slices.Contains(f.Services[:i], name):
			v.add(field, "names %q twice", name)
		}
	}
}

// fullName matches the name of a service with its package.
var fullName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

func (f *GRPCJSONFilter) uses() []Key { return nil }

// Set is the descriptor set before base64. Only a filter without a fault has one.
func (f *GRPCJSONFilter) Set() []byte {
	set, _ := base64.StdEncoding.DecodeString(f.DescriptorSet)
	return set
}

// Converts reports whether errors get a body.
func (f *GRPCJSONFilter) Converts() bool { return f.ConvertStatus == nil || *f.ConvertStatus }

// Advice says what costs much.
func (f *GRPCJSONFilter) Advice() []string {
	if f.MaxRequestBytes <= manyBytes && f.MaxResponseBytes <= manyBytes {
		return nil
	}
	return []string{"allows messages of more than 10 MiB, and an Envoy holds each whole message in memory: " +
		"move larger files to separate storage"}
}
