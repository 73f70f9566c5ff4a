package attack_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// sets are filters with small descriptor sets that would need much work without bounds (pkg/core/grpcjson/bounds.go).
func sets() []body {
	post := func(name, says string, files ...*descriptorpb.FileDescriptorProto) body {
		return body{name, http.MethodPost, "/filter", "application/json", func() string {
			set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
			Expect(err).NotTo(HaveOccurred())
			return fmt.Sprintf(`{"Filter_name":"f","Filter_type":"http_filter_grpcjson","Filter_config":{"services":["a.S"],"descriptor_set":%q}}`, base64.StdEncoding.EncodeToString(set))
		}, http.StatusUnprocessableEntity, says}
	}
	var layers, chain []*descriptorpb.FileDescriptorProto
	for i := range 40 {
		for _, side := range []string{"l", "r"} {
			f := &descriptorpb.FileDescriptorProto{Name: proto.String(fmt.Sprint(side, i))}
			if i > 0 {
				f.Dependency, f.PublicDependency = []string{fmt.Sprint("l", i-1), fmt.Sprint("r", i-1)}, []int32{0, 1}
			}
			layers = append(layers, f)
		}
	}
	for i := range 9000 {
		f := &descriptorpb.FileDescriptorProto{Name: proto.String(fmt.Sprint("c", i))}
		if i > 0 {
			f.Dependency, f.PublicDependency = []string{fmt.Sprint("c", i-1)}, []int32{0}
		}
		chain = append(chain, f)
	}
	relative := &descriptorpb.DescriptorProto{Name: proto.String("M")}
	for i := range 5000 {
		relative.Field = append(relative.Field, &descriptorpb.FieldDescriptorProto{Name: proto.String(fmt.Sprint("f", i)), Number: proto.Int32(int32(i + 1)), TypeName: proto.String("x.N")}) //nolint:gosec // small
	}
	return []body{
		post("of 191 bytes, whose spellings double", "leads through 25 fields", callsOf("/v1/{"+strings.Repeat("a_b.", 24)+"v_x}")),
		post("with public imports that double", "ways through its public imports", append(layers, callsOf("/v1"))...),
		post("with a long chain of public imports", "ways through its public imports", append(chain, callsOf("/v1"))...),
		post("with a long package", "a name of 190001 bytes", callsOf("/v1"), &descriptorpb.FileDescriptorProto{Name: proto.String("p"), Package: proto.String(strings.Repeat("a.", 95_000) + "a")}),
		post("with relative names in a long package", "a name of 40001 bytes", callsOf("/v1"),
			&descriptorpb.FileDescriptorProto{Name: proto.String("p"), Package: proto.String(strings.Repeat("a.", 20_000) + "a"), MessageType: []*descriptorpb.DescriptorProto{relative}}),
		post("with relative names", "the relative name of a type", callsOf("/v1"), &descriptorpb.FileDescriptorProto{Name: proto.String("p"), MessageType: []*descriptorpb.DescriptorProto{relative}}),
		post("with a long path", "has a path of 190000 bytes", callsOf(strings.Repeat("/a", 95_000))),
	}
}

// callsOf returns a file with a message that contains itself, and a method whose rule has the path.
func callsOf(path string) *descriptorpb.FileDescriptorProto {
	options := &descriptorpb.MethodOptions{}
	proto.SetExtension(options, annotations.E_Http, &annotations.HttpRule{Pattern: &annotations.HttpRule_Get{Get: path}})
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, of *string) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, TypeName: of, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	return &descriptorpb.FileDescriptorProto{
		Name: proto.String("a"), Package: proto.String("a"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("N"), Field: []*descriptorpb.FieldDescriptorProto{
			field("a_b", 1, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, proto.String(".a.N")), field("v_x", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING, nil),
		}}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("S"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: proto.String("C"), InputType: proto.String(".a.N"), OutputType: proto.String(".a.N"), Options: options},
		}}},
	}
}
