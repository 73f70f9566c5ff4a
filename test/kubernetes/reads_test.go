package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/jsonpath"
)

// Specs read until something is as they want it. These reads give what kubectl would print, and do not start it each
// time, which takes longer than the answer.

// resources are where the API has the kinds that are read.
var resources = map[string][2]string{
	"gatewayhost":      {"gateway.gatehouse.dev/v1", "gatewayhosts"},
	"routefilter":      {"gateway.gatehouse.dev/v1", "routefilters"},
	"consumer":         {"gateway.gatehouse.dev/v1", "consumers"},
	"globalconfig":     {"gateway.gatehouse.dev/v1", "globalconfigs"},
	"gateway":          {"gateway.networking.k8s.io/v1", "gateways"},
	"httproute":        {"gateway.networking.k8s.io/v1", "httproutes"},
	"tlsroute":         {"gateway.networking.k8s.io/v1", "tlsroutes"},
	"tcproute":         {"gateway.networking.k8s.io/v1", "tcproutes"},
	"udproute":         {"gateway.networking.k8s.io/v1", "udproutes"},
	"grpcroute":        {"gateway.networking.k8s.io/v1", "grpcroutes"},
	"lease":            {"coordination.k8s.io/v1", "leases"},
	"listenerset":      {"gateway.networking.k8s.io/v1", "listenersets"},
	"backendtlspolicy": {"gateway.networking.k8s.io/v1", "backendtlspolicies"},
}

// get reads an object, or the list of a kind if the name is empty, in the form that accept says.
func (p place) get(kind, name, accept string) (string, error) {
	GinkgoHelper()
	at, known := resources[kind]
	Expect(known).To(BeTrue(), "add %s to resources", kind)
	path := fmt.Sprintf("/apis/%s/namespaces/%s/%s", at[0], p.namespace, at[1])
	if name != "" {
		path += "/" + name
	}
	return p.Read(limit(), path, accept)
}

// jsonPath returns what kubectl get --output jsonpath= prints, or the error.
func (p place) jsonPath(kind, name, path string) string {
	GinkgoHelper()
	text, err := p.get(kind, name, "application/json")
	if err != nil {
		return err.Error()
	}
	var object any
	Expect(json.Unmarshal([]byte(text), &object)).To(Succeed())
	template, out := jsonpath.New("").AllowMissingKeys(true), &strings.Builder{}
	Expect(template.Parse(path)).To(Succeed())
	Expect(template.Execute(out, object)).To(Succeed())
	return out.String()
}

// rows returns what kubectl get prints for the objects of a kind or for one, their columns separated by one space,
// without their age, or the error.
func (p place) rows(kind, name string) []string {
	GinkgoHelper()
	text, err := p.get(kind, name, "application/json;as=Table;v=v1;g=meta.k8s.io")
	if err != nil {
		return []string{err.Error()}
	}
	var table struct {
		ColumnDefinitions []struct {
			Name     string
			Priority int
		}
		Rows []struct{ Cells []any }
	}
	Expect(json.Unmarshal([]byte(text), &table)).To(Succeed())
	var rows []string
	for _, row := range table.Rows {
		var columns []string
		for i, c := range table.ColumnDefinitions {
			if c.Priority == 0 && c.Name != "Age" && row.Cells[i] != nil {
				columns = append(columns, fmt.Sprint(row.Cells[i]))
			}
		}
		rows = append(rows, strings.Join(columns, " "))
	}
	return rows
}

// row returns the row of an object.
func (p place) row(kind, name string) func() string {
	return func() string { return strings.Join(p.rows(kind, name), "\n") }
}

// envoys returns how many Envoys have an object.
func (p place) envoys(kind, name string) func() string {
	return func() string { return p.jsonPath(kind, name, "{.status.envoys}") }
}

// condition returns a condition of an object, as STATUS REASON (GENERATION): MESSAGE.
func (p place) condition(kind, name, condition string) func() string {
	return func() string {
		return p.jsonPath(kind, name, fmt.Sprintf(
			`{range .status.conditions[?(@.type==%q)]}{.status} {.reason} ({.observedGeneration}): {.message}{end}`, condition))
	}
}
