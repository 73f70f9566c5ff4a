package grpcjson

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A descriptor set is read within the transaction that stores it, so the work must be in proportion to its size.
// Without these bounds some steps grow with the square of the size, or double with each field or file.
const (
	// longestName bounds full names, in bytes: each name contains those of everything around it.
	longestName = 512
	// longestPath bounds the path of an http rule, in bytes.
	longestPath = 2048
	// deepestField is how many fields a variable or a body may lead through.
	deepestField = 8
	// mostSpellings bounds Calls.Ignored: a field with two names doubles the spellings of what is in it.
	mostSpellings = 4096
	// mostCompared bounds how often a variable is compared with a rule.
	mostCompared = 1 << 20
	// mostOverriding bounds Calls.Overriding: each of its texts contains the paths of two rules.
	mostOverriding = 100
	// mostPublic bounds the ways through public imports: protodesc follows each, for every file that has an import.
	mostPublic = 10_000
)

// checkNames returns an error for a name that would cost too much.
func checkNames(files []*descriptorpb.FileDescriptorProto) error {
	for _, f := range files {
		if err := checkNamesIn(f.ProtoReflect(), len(f.GetPackage())); err != nil {
			return fmt.Errorf("descriptor_set has in file %s %w", shorten(f.GetName()), err)
		}
	}
	return nil
}

// checkNamesIn checks a part of a file whose full name has the length, and what it contains. The text of an error
// follows the name of the file.
func checkNamesIn(m protoreflect.Message, length int) (err error) {
	if length > longestName {
		return fmt.Errorf("a name of %d bytes; at most %d are allowed", length, longestName)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Name() == "options" || f.Name() == "source_code_info":
		case f.Message() != nil && f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				part := v.List().Get(i).Message()
				err = checkNamesIn(part, length+1+ownLength(part))
			}
		case isTypeName(f.Name()):
			err = checkTypeName(v.String())
		}
		return err == nil
	})
	return err
}

// ownLength returns the length of a part's own name; 0 if it has none.
func ownLength(m protoreflect.Message) int {
	if name := m.Descriptor().Fields().ByName("name"); name != nil && name.Kind() == protoreflect.StringKind {
		return len(m.Get(name).String())
	}
	return 0
}

// isTypeName reports whether a field of a descriptor names a type.
func isTypeName(field protoreflect.Name) bool {
	return field == "type_name" || field == "extendee" || field == "input_type" || field == "output_type"
}

// checkTypeName refuses relative names: each would be looked up in everything around it. protoc writes none.
func checkTypeName(name string) error {
	if !strings.HasPrefix(name, ".") {
		return fmt.Errorf("the relative name of a type, %q; make the set with protoc, which writes full names", shorten(name))
	}
	if len(name) > longestName+1 {
		return fmt.Errorf("the name of a type of %d bytes; at most %d are allowed", len(name)-1, longestName)
	}
	return nil
}

// shorten returns the beginning of a long text.
func shorten(text string) string {
	if len(text) <= longestName {
		return text
	}
	return text[:longestName] + "..."
}

// publicWays counts the ways through public imports.
type publicWays struct {
	// from is the number of ways that begin at a file, by its name; all is for every file that has an import.
	from map[string]int
	all  int
}

// add counts those of a file after its imports, and returns an error if there are too many.
func (w *publicWays) add(f *descriptorpb.FileDescriptorProto) error {
	for _, name := range f.GetDependency() {
		w.all += w.from[name]
	}
	for _, i := range f.GetPublicDependency() {
		if int(i) < len(f.GetDependency()) && i >= 0 {
			w.from[f.GetName()] += 1 + w.from[f.GetDependency()[i]]
		}
	}
	if w.all > mostPublic || w.from[f.GetName()] > mostPublic {
		return fmt.Errorf("descriptor_set has more than %d ways through its public imports, up to file %s; "+
			"leave out public imports that nothing needs", mostPublic, shorten(f.GetName()))
	}
	return nil
}
