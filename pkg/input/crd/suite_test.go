package crd_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

func TestCRD(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Configuration as objects of Kubernetes")
}

// parse reads a document.
func parse(text string) *document.Document {
	GinkgoHelper()
	doc, err := document.Parse([]byte(text), "")
	Expect(err).NotTo(HaveOccurred())
	return doc
}

// encode writes a document.
func encode(doc *document.Document) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(document.Encode(&out, doc, false)).To(Succeed())
	return out.String()
}

// exported returns the result of Export for a document, in YAML.
func exported(doc *document.Document, o crd.ExportOptions) string {
	GinkgoHelper()
	objects, todo, err := crd.Export(doc, o)
	Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	Expect(crd.Write(&out, objects, todo)).To(Succeed())
	return out.String()
}

// imported returns the document for objects in YAML, with the warnings of Import.
func imported(text string, o crd.ImportOptions) (doc string, warnings []string) {
	GinkgoHelper()
	objects, skipped, err := crd.Read(strings.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(skipped).To(BeEmpty())
	read, warnings, err := crd.Import(objects, o)
	Expect(err).NotTo(HaveOccurred())
	return encode(read), warnings
}
