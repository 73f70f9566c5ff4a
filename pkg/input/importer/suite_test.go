package importer_test

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/importer"
)

func TestImporter(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "importer")
}

// plan reads and imports a document as the service api of upstream blue.
func plan(text string, stored importer.Stored) (importer.Plan, error) {
	return planWith(text, false, importer.Options{Service: "api", Upstreams: []string{"blue"}, NoPreflight: true}, stored)
}

func planWith(text string, lenient bool, o importer.Options, stored importer.Stored) (importer.Plan, error) {
	d, err := importer.Read(context.Background(), []byte(text), lenient)
	if err != nil {
		return importer.Plan{}, err
	}
	return importer.Import(d, o, stored)
}

// planOf is plan for a document that can be imported.
func planOf(text string, stored importer.Stored) importer.Plan {
	GinkgoHelper()
	p, err := plan(text, stored)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// withPaths returns a document with a server and these paths.
func withPaths(paths string) string {
	return "openapi: 3.0.3\ninfo: {title: t, version: '1'}\nservers: [{url: https://api.example.com/}]\npaths:\n" + paths
}

const ok = "responses: {'200': {description: ok}}"

// raw returns texts as JSON.
func raw(texts ...string) []json.RawMessage {
	var list []json.RawMessage
	for _, t := range texts {
		list = append(list, json.RawMessage(t))
	}
	return list
}
