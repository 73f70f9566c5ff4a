package grpcjson

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
)

// deepest is how deep message declarations may be nested: Envoy's C++ protobuf library stops at 32.
const deepest = 32

// Options determine, together with the set, which requests are calls.
type Options struct {
	// Services are the full names of the services that can be called.
	Services []string
	// AutoMapping makes a call of POST /SERVICE/METHOD for each method without a rule.
	AutoMapping bool
	// ConvertStatus converts errors to JSON, for which Envoy adds google.rpc.Status to the set.
	ConvertStatus bool
	// Ignored are query parameters that need not be fields; with IgnoreUnknown none has to be a field.
	Ignored       []string
	IgnoreUnknown bool
}

// Calls are the calls that requests can become.
type Calls struct {
	// Set is the descriptor set in the form that Envoy requires: in order, and without source comments.
	Set []byte
	// Ignored are query parameters that must be removed: variables of paths, in all spellings. Envoy would let them
	// override the path. Overriding describes those that must stay because another rule needs them.
	Ignored, Overriding []string

	rules   []rule
	root    node
	verbs   map[string]bool
	options Options
}

// Read reads a serialized FileDescriptorSet. It returns an error for a configuration that Envoy would refuse, or that
// would do nothing.
func Read(set []byte, o Options) (*Calls, error) {
	var read descriptorpb.FileDescriptorSet
	if err := (proto.UnmarshalOptions{RecursionLimit: deepest}).Unmarshal(set, &read); err != nil ||
		len(read.GetFile()) == 0 {
		return nil, errors.New("descriptor_set is not a descriptor set; " +
			"make it with protoc --include_imports --descriptor_set_out=FILE, and encode FILE in base64")
	}
	if err := checkNames(read.GetFile()); err != nil {
		return nil, err
	}
	files, err := inOrder(read.GetFile())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		f.SourceCodeInfo = nil
	}
	read.File = files
	c := &Calls{verbs: map[string]bool{}, options: o}
	if c.Set, err = (proto.MarshalOptions{Deterministic: true}).Marshal(&read); err != nil {
		return nil, fmt.Errorf("descriptor_set cannot be written again: %w", err)
	}
	registry, err := register(files, o.ConvertStatus)
	if err != nil {
		return nil, errors.New("descriptor_set is not valid: " + plain(err))
	}
	for _, name := range o.Services {
		if err := c.addService(registry, name); err != nil {
			return nil, err
		}
	}
	if c.root.isEmpty() {
		return nil, errors.New("no method of its services has a google.api.http rule, so there is nothing to call; " +
			"set auto_mapping, or add rules")
	}
	if err := c.guardPaths(); err != nil {
		return nil, err
	}
	return c, nil
}

// plain returns the text of an error of the protobuf module. The space after its prefix differs from build to build.
func plain(err error) string {
	return strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
}

// inOrder sorts the files: each comes after those that it imports.
func inOrder(files []*descriptorpb.FileDescriptorProto) ([]*descriptorpb.FileDescriptorProto, error) {
	byName := map[string]*descriptorpb.FileDescriptorProto{}
	for _, f := range files {
		if byName[f.GetName()] != nil {
			return nil, fmt.Errorf("descriptor_set has file %s twice", f.GetName())
		}
		byName[f.GetName()] = f
	}
	var ordered []*descriptorpb.FileDescriptorProto
	state := map[string]int{} // 1: its imports are being added; 2: it was added
	public := publicWays{from: map[string]int{}}
	var add func(f *descriptorpb.FileDescriptorProto) error
	add = func(f *descriptorpb.FileDescriptorProto) error {
		state[f.GetName()] = 1
		for _, name := range f.GetDependency() {
			switch imported := byName[name]; {
			case imported == nil:
				return fmt.Errorf("descriptor_set lacks file %s, which %s imports; make it with protoc --include_imports", name,
					f.GetName())
			case state[name] == 1:
				return fmt.Errorf("descriptor_set has files that import each other: %s and %s", name, f.GetName())
			case state[name] == 0:
				if err := add(imported); err != nil {
					return err
				}
			}
		}
		state[f.GetName()] = 2
		ordered = append(ordered, f)
		return public.add(f)
	}
	for _, f := range files {
		if state[f.GetName()] == 0 {
			if err := add(f); err != nil {
				return nil, err
			}
		}
	}
	return ordered, nil
}

// register resolves the files, with those that Envoy adds.
func register(files []*descriptorpb.FileDescriptorProto, convertStatus bool) (*protoregistry.Files, error) {
	set := &descriptorpb.FileDescriptorSet{File: slices.Clone(files)}
	registry, err := protodesc.NewFiles(set)
	if err != nil || !convertStatus {
		return registry, err
	}
	for _, builtin := range []protoreflect.MessageDescriptor{
		(&anypb.Any{}).ProtoReflect().Descriptor(), (&statuspb.Status{}).ProtoReflect().Descriptor(),
	} {
		if _, err := registry.FindDescriptorByName(builtin.FullName()); err != nil {
			set.File = append(set.File, protodesc.ToFileDescriptorProto(builtin.ParentFile()))
		}
	}
	return protodesc.NewFiles(set)
}

func (c *Calls) addService(registry *protoregistry.Files, name string) error {
	found, _ := registry.FindDescriptorByName(protoreflect.FullName(name))
	service, is := found.(protoreflect.ServiceDescriptor)
	if !is {
		return fmt.Errorf("descriptor_set has no service %s; it has %s", name, listServices(registry))
	}
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
		if rule == nil && c.options.AutoMapping {
			rule = &annotations.HttpRule{Pattern: &annotations.HttpRule_Post{Post: callPath(method)}, Body: "*"}
		}
		if rule == nil {
			continue
		}
		for _, one := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
			if err := c.addRule(method, one); err != nil {
				return fmt.Errorf("the http rule of %s %w", method.FullName(), err)
			}
		}
	}
	return nil
}

// callPath returns the path of a call in gRPC.
func callPath(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

func listServices(registry *protoregistry.Files) string {
	var names []string
	registry.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			names = append(names, string(f.Services().Get(i).FullName()))
		}
		return true
	})
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// addRule adds a rule, or says what is wrong with it; the text follows the rule's name in a sentence.
func (c *Calls) addRule(m protoreflect.MethodDescriptor, r *annotations.HttpRule) error {
	method, pattern := patternOf(r)
	if method == "" {
		return nil // Envoy ignores it
	}
	if len(pattern) > longestPath {
		return fmt.Errorf("has a path of %d bytes; at most %d are allowed", len(pattern), longestPath)
	}
	t, ok := parseTemplate(pattern)
	if !ok {
		return fmt.Errorf("has the path %q; expected a path like /v1/books/{id}", pattern)
	}
	paths := slices.Clone(t.variables)
	if body := r.GetBody(); body != "" && body != "*" {
		paths = append(paths, strings.Split(body, "."))
	}
	for _, path := range paths {
		if len(path) > deepestField {
			return fmt.Errorf("leads through %d fields to %s; at most %d are allowed", len(path), shorten(path[len(path)-1]),
				deepestField)
		}
		if fieldAt(m.Input(), path) == nil {
			return fmt.Errorf("names field %s, which %s lacks", strings.Join(path, "."), m.Input().FullName())
		}
	}
	if field := r.GetResponseBody(); field != "" {
		f := fieldAt(m.Output(), strings.Split(field, "."))
		if f == nil || f.Message() == nil || f.Message().FullName() != "google.api.HttpBody" {
			return fmt.Errorf("has response_body %s, which Envoy takes only for a field of type google.api.HttpBody", field)
		}
	}
	if t.verb != "" {
		c.verbs[t.verb] = true
	}
	c.rules = append(c.rules, newRule(method+" "+pattern, m.Input(), t.variables, r.GetBody()))
	if other := c.root.insert(t.segments, method, m); other != nil {
		return fmt.Errorf("has %s %s, which is taken by %s, so that neither would be called", method, pattern,
			other.FullName())
	}
	return nil
}

// patternOf returns the HTTP method of a rule and the template of its path.
func patternOf(rule *annotations.HttpRule) (method, template string) {
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return "GET", p.Get
	case *annotations.HttpRule_Put:
		return "PUT", p.Put
	case *annotations.HttpRule_Post:
		return "POST", p.Post
	case *annotations.HttpRule_Delete:
		return "DELETE", p.Delete
	case *annotations.HttpRule_Patch:
		return "PATCH", p.Patch
	case *annotations.HttpRule_Custom:
		return p.Custom.GetKind(), p.Custom.GetPath()
	}
	return "", ""
}

// fieldAt returns the field at a path of names, in the spelling of .proto files or of JSON; nil means that there is
// none.
func fieldAt(m protoreflect.MessageDescriptor, path []string) (f protoreflect.FieldDescriptor) {
	for _, name := range path {
		if m == nil {
			return nil
		}
		if f = m.Fields().ByJSONName(name); f == nil {
			f = m.Fields().ByName(protoreflect.Name(name))
		}
		if f == nil {
			return nil
		}
		m = f.Message()
	}
	return f
}
