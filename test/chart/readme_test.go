package chart_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the tables of the chart's README again")

const (
	readme = chart + "/README.md"
	begin  = "<!-- What follows is made of values.yaml by make chart-docs. -->\n"
)

// value is a row of the table.
type value struct{ key, kind, standard, description string }

// described returns the values of a map, and reports values without a comment.
func described(path string, node *yaml.Node) (rows []value) {
	GinkgoHelper()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, child := node.Content[i], node.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		text, found := strings.CutPrefix(lastLine(key.HeadComment), "# -- ")
		if child.Kind == yaml.MappingNode && len(child.Content) > 0 && !found {
			rows = append(rows, described(name, child)...)
			continue
		}
		Expect(found).To(BeTrue(), "values.yaml does not describe %s: give it a comment that begins with # --", name)
		rows = append(rows, value{name, kindOf(child), inline(child), text})
	}
	return rows
}

func lastLine(comment string) string {
	lines := strings.Split(comment, "\n")
	return lines[len(lines)-1]
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "object"
	case yaml.SequenceNode:
		return "list"
	}
	return map[string]string{"!!str": "string", "!!int": "int", "!!bool": "bool"}[n.Tag]
}

func inline(n *yaml.Node) string {
	GinkgoHelper()
	var v any
	Expect(n.Decode(&v)).To(Succeed())
	text, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func table(rows []value) string {
	var b strings.Builder
	b.WriteString(begin + "\n| value | type | default | description |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", r.key, r.kind, r.standard, r.description)
	}
	return b.String()
}

// allowed returns the values that a schema knows; a proxy's are those of envoy.
func allowed(path string, schema map[string]any) (keys []string) {
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 {
		return []string{path}
	}
	for name, child := range properties {
		keys = append(keys, allowed(strings.TrimPrefix(path+"."+name, "."), child.(map[string]any))...)
	}
	return keys
}

var _ = Describe("The values of the chart", func() {
	read := func() (rows []value) {
		GinkgoHelper()
		text, err := os.ReadFile(chart + "/values.yaml")
		Expect(err).NotTo(HaveOccurred())
		var document yaml.Node
		Expect(yaml.Unmarshal(text, &document)).To(Succeed())
		return described("", document.Content[0])
	}

	It("are all in its README (make chart-docs writes them again)", func() {
		text, err := os.ReadFile(readme)
		Expect(err).NotTo(HaveOccurred())
		head, have, found := strings.Cut(string(text), begin)
		Expect(found).To(BeTrue(), "README.md has lost the line "+begin)
		want := table(read())
		if *update {
			Expect(os.WriteFile(readme, []byte(head+want), 0o600)).To(Succeed())
			return
		}
		Expect(begin+have).To(Equal(want), "run make chart-docs")
	})

	It("are the same as in its schema", func() {
		text, err := os.ReadFile(chart + "/values.schema.json")
		Expect(err).NotTo(HaveOccurred())
		var schema map[string]any
		Expect(json.Unmarshal(text, &schema)).To(Succeed())
		known := map[string]bool{}
		for _, key := range allowed("", schema) {
			known[key] = true
		}
		for _, r := range read() {
			below := false
			for key := range known {
				below = below || strings.HasPrefix(key, r.key+".") // resources, an issuer
			}
			Expect(known[r.key] || below).To(BeTrue(), "values.schema.json lacks "+r.key)
			for key := range known {
				if key == r.key || strings.HasPrefix(key, r.key+".") {
					delete(known, key)
				}
			}
		}
		Expect(known).To(Equal(map[string]bool{"global": true}), "helm's own, and nothing that values.yaml lacks")
	})
})
