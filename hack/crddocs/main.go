// Command crddocs writes docs/kubernetes-fields.md from the CustomResourceDefinitions:
// every field with its type, its default and its description.
//
// usage: crddocs CRD.yaml... > docs/kubernetes-fields.md
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := write(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crddocs:", err)
		os.Exit(1)
	}
}

const head = `# Fields of the kinds of cluster mode

` + "`make crds`" + ` generates this page from the comments in ` + "`api/gateway/v1`" + `. ` + "`kubectl explain`" + ` shows the same. The group of every kind is
` + "`gateway.gatehouse.dev`" + `. ReferenceGrant is served as v1, the other kinds as v1 and v1beta1, which do not differ. Required fields are bold.
[kubernetes.md](kubernetes.md) explains how to use them.
`

func write(w io.Writer, files []string) error {
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		names := crd.Spec.Names
		_, err = fmt.Fprintf(w, "\n## %s\n%s\n\nShort name: `%s`.\n\n| field | type | default | meaning |\n|---|---|---|---|\n%s",
			names.Kind, oneLine(schema.Description), strings.Join(names.ShortNames, "`, `"),
			rows("spec", schema.Properties["spec"])+rows("status", schema.Properties["status"]))
		if err != nil {
			return err
		}
	}
	return nil
}

// rows returns the rows of the fields below a place.
func rows(at string, s apiextensionsv1.JSONSchemaProps) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field, path := s.Properties[name], at+"."+name
		meaning, standard := cutDefault(oneLine(field.Description))
		shown := "`" + path + "`"
		if slices.Contains(s.Required, name) {
			shown = "**" + shown + "**"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", shown, typeOf(field), standard, strings.ReplaceAll(meaning, "|", `\|`))
		if strings.HasSuffix(path, "status.conditions") {
			continue // the conditions of Kubernetes
		}
		out.WriteString(rows(path, field))
		if field.Items != nil && field.Items.Schema != nil {
			out.WriteString(rows(path+"[]", *field.Items.Schema))
		}
	}
	return out.String()
}

func typeOf(s apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum {
			words = append(words, strings.Trim(string(v.Raw), `"`))
		}
		return strings.Join(words, ", ")
	case s.Items != nil && s.Items.Schema != nil:
		element := typeOf(*s.Items.Schema)
		if element == "object" || element == "string" {
			element += "s"
		}
		return "list of " + element
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%d to %d", int(*s.Minimum), int(*s.Maximum))
	case s.Type == "string":
		return "string"
	case s.Type == "integer":
		return "integer"
	case s.Type == "boolean":
		return "boolean"
	}
	return s.Type
}

// cutDefault removes the sentence "Default: ..." from a description and returns it.
func cutDefault(text string) (rest, standard string) {
	before, after, found := strings.Cut(text, "Default: ")
	if !found {
		return text, ""
	}
	standard, more, _ := strings.Cut(after+" ", ". ")
	return strings.TrimSpace(before + more), strings.TrimSuffix(standard, ".")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
