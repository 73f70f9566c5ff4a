package translate_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// packed returns all messages inside an Any in the golden cases, at any depth, by type.
func packed() map[string][]proto.Message {
	GinkgoHelper()
	files, err := filepath.Glob("../pipeline/testdata/cases/*/envoy/*.yaml")
	Expect(err).NotTo(HaveOccurred())
	files = append(files, "../pipeline/testdata/listeners/full.yaml")
	found, seen := map[string][]proto.Message{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		var document any
		Expect(yaml.Unmarshal(text, &document)).To(Succeed())
		eachPacked(document, func(a map[string]any) {
			// A difference between two types has null for the fields of the other one.
			maps.DeleteFunc(a, func(_ string, value any) bool { return value == nil })
			text, err := json.Marshal(a)
			Expect(err).NotTo(HaveOccurred())
			if seen[string(text)] {
				return
			}
			seen[string(text)] = true
			var out anypb.Any
			Expect(protojson.Unmarshal(text, &out)).To(Succeed(), file)
			name := string(out.MessageName())
			found[name] = append(found[name], must(out.UnmarshalNew()))
		})
	}
	return found
}

func eachPacked(value any, do func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		if v["@type"] != nil {
			do(v)
		}
		for _, below := range v {
			eachPacked(below, do)
		}
	case []any:
		for _, below := range v {
			eachPacked(below, do)
		}
	}
}

// spoil changes one field of a message, or of a nested one, so that Envoy refuses the
// whole. It reports whether such a field exists.
func spoil(whole translate.Message, m protoreflect.Message, depth int) bool {
	if depth == 0 || m.Descriptor().FullName() == "google.protobuf.Any" {
		return false
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		had, old := m.Has(f), m.Get(f)
		for _, value := range wrong(m, f) {
			if value.IsValid() {
				m.Set(f, value)
			} else {
				m.Clear(f)
			}
			if whole.ValidateAll() != nil {
				return true
			}
			for _, inner := range messagesIn(f, value) {
				if spoil(whole, inner, depth-1) {
					return true
				}
			}
			m.Clear(f)
			if had {
				m.Set(f, old)
			}
		}
		for _, inner := range messagesIn(f, old) {
			if had && spoil(whole, inner, depth-1) {
				return true
			}
		}
	}
	return false
}

// wrong returns values that a field may not have. An invalid value stands for no value.
func wrong(m protoreflect.Message, f protoreflect.FieldDescriptor) []protoreflect.Value {
	none := protoreflect.Value{}
	switch {
	case f.IsMap():
		value := m.NewField(f)
		key := protoreflect.ValueOfString("x").MapKey()
		if f.MapKey().Kind() == protoreflect.StringKind && f.MapValue().Message() != nil {
			value.Map().Set(key, value.Map().NewValue())
		}
		return []protoreflect.Value{none, value}
	case f.IsList():
		value := m.NewField(f)
		value.List().Append(value.List().NewElement())
		return []protoreflect.Value{none, value}
	case f.Message() != nil:
		return []protoreflect.Value{none, m.NewField(f)}
	case f.Kind() == protoreflect.EnumKind:
		return []protoreflect.Value{none, protoreflect.ValueOfEnum(99)}
	case f.Kind() == protoreflect.StringKind:
		return []protoreflect.Value{none, protoreflect.ValueOfString(strings.Repeat("a", 300)), protoreflect.ValueOfString("a\n")}
	}
	return []protoreflect.Value{none}
}

// messagesIn returns the messages in the value of a field.
func messagesIn(f protoreflect.FieldDescriptor, value protoreflect.Value) (list []protoreflect.Message) {
	switch {
	case !value.IsValid() || f.Message() == nil || f.IsMap() && f.MapValue().Message() == nil:
	case f.IsMap():
		value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			list = append(list, v.Message())
			return true
		})
	case f.IsList():
		for i := range value.List().Len() {
			list = append(list, value.List().Get(i).Message())
		}
	default:
		list = append(list, value.Message())
	}
	return list
}

var _ = Describe("A packed message", func() {
	It("is checked, whatever its type", func() {
		var unbreakable []string
		all := packed()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			broken := false
			for _, m := range all[name] {
				m, constrained := m.(translate.Message) // protobuf's own have no constraints
				if !constrained {
					continue
				}
				_, err := translate.Pack(m)
				Expect(err).NotTo(HaveOccurred(), name)
				if broken = spoil(m, m.ProtoReflect(), 5); broken {
					_, err := translate.Pack(m)
					Expect(err).To(MatchError(ContainSubstring("invalid ")), name)
					break
				}
			}
			if !broken {
				unbreakable = append(unbreakable, name)
			}
		}
		Expect(unbreakable).To(Equal([]string{
			"envoy.config.route.v3.FilterConfig",
			"envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
			"envoy.extensions.filters.http.cors.v3.Cors",
			"envoy.extensions.filters.http.grpc_web.v3.GrpcWeb",
			"envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
			"envoy.extensions.matching.actions.transform_stat.v3.TransformStat",
			"envoy.extensions.matching.common_inputs.network.v3.ServerNameInput",
			"envoy.extensions.matching.common_inputs.network.v3.SourceIPInput",
			"envoy.extensions.matching.common_inputs.network.v3.TransportProtocolInput",
			"envoy.extensions.matching.common_inputs.stats.v3.StatTagValueInput",
			"envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
			"envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer",
			"google.protobuf.StringValue",
		}), "a message without constraints is listed here; in another one spoil should find what to break")
		Expect(len(all)).To(BeNumerically(">", 25))
	})
})
