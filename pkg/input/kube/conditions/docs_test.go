package conditions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
)

// textsOf returns the string constants of a Go file.
func textsOf(file string) []string {
	GinkgoHelper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	Expect(err).NotTo(HaveOccurred())
	var texts []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		for _, value := range spec.Values {
			if lit, is := value.(*ast.BasicLit); is && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				Expect(err).NotTo(HaveOccurred())
				texts = append(texts, text)
			}
		}
		return false
	})
	return texts
}

var _ = Describe("The table of reasons in docs/kubernetes.md", func() {
	It("has each reason for which a condition is not True", func() {
		page, err := os.ReadFile("../../../../docs/kubernetes.md")
		Expect(err).NotTo(HaveOccurred())
		var rows []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\| ").FindAllStringSubmatch(string(page), -1) {
			rows = append(rows, row[1])
		}
		reasons := textsOf("facts.go")
		Expect(reasons).To(ContainElements("Invalid", "NotUsed"))
		for _, code := range textsOf("../../../core/model/condition.go") {
			p, shown := conditions.FromMirror(model.Condition{Code: code}, "spec")
			if !shown {
				continue
			}
			list, _ := conditions.Conditions(conditions.Facts{Generation: 1, Proxies: []string{"gw"}, Problems: []conditions.Problem{p}}, nil, start)
			for _, c := range list {
				reasons = append(reasons, c.Reason)
			}
		}
		Expect(reasons).To(ContainElements("NoUpstream", "NoEndpoints", "Quarantined"))
		without := []string{
			"Accepted", "ResolvedRefs", // reasons of conditions that are True
			"KubernetesUnreadable", "KubernetesUnwritable", "KubernetesShared", "TLSDirectory", // of no Kubernetes object
		}
		for _, reason := range reasons {
			if !slices.Contains(without, reason) {
				Expect(rows).To(ContainElement(reason))
			}
		}
	})
})
