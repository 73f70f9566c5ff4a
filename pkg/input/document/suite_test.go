package document_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func TestDocument(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "configuration document")
}

// keys is the file with the key of the secrets.
var keys string

var _ = BeforeSuite(func() { keys = filepath.Join(GinkgoT().TempDir(), "keys.json") })

// config is a configuration in a database of its own.
type config struct{ store.Store }

// configOf returns a configuration to which the documents were applied.
func configOf(docs ...string) config {
	GinkgoHelper()
	ring, _, err := seal.OpenOrCreate(keys)
	Expect(err).NotTo(HaveOccurred())
	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{URL: url, Sealer: ring})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(db.Close()).To(Succeed()) })
	c := config{db}
	for _, doc := range docs {
		c.applied(doc, document.ApplyOptions{})
	}
	return c
}

// apply applies a document. It returns the result of Apply, with the revision.
func (c config) apply(text string, opts document.ApplyOptions) (document.Result, int64, error) {
	mediaType := "application/yaml"
	if text != "" && text[0] == '{' {
		mediaType = "application/json"
	}
	doc, err := document.Parse([]byte(text), mediaType)
	if err != nil {
		return document.Result{}, 0, err
	}
	var result document.Result
	revision, err := c.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) error {
		result, err = document.Apply(w, doc, opts)
		return err
	})
	return result, revision, err
}

func (c config) applied(text string, opts document.ApplyOptions) document.Result {
	GinkgoHelper()
	result, _, err := c.apply(text, opts)
	Expect(err).NotTo(HaveOccurred())
	return result
}

// dump writes the configuration.
func (c config) dump(opts document.WriteOptions) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(c.Read(context.Background(), func(r store.Reader) error { return document.Write(&out, r, opts) })).To(Succeed())
	return out.String()
}

func (c config) revision() int64 {
	GinkgoHelper()
	var revision int64
	Expect(c.Read(context.Background(), func(r store.Reader) (err error) {
		revision, err = r.Revision()
		return err
	})).To(Succeed())
	return revision
}

// messages returns the fields of an Invalid error, each as "field: message".
func messages(err error) []string {
	GinkgoHelper()
	e, ok := errors.AsType[*model.Error](err)
	Expect(ok).To(BeTrue(), "%v", err)
	Expect(e.Kind).To(Equal(model.Invalid))
	if len(e.Fields) == 0 {
		return []string{e.Message}
	}
	var list []string
	for _, f := range e.Fields {
		list = append(list, fmt.Sprintf("%s: %s", f.Field, f.Message))
	}
	return list
}
