package document_test

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func jsonOf(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text has always JSON
	}
	return string(b)
}

// headers lists the conditions of route r of service s.
func (c config) headers() []string {
	GinkgoHelper()
	var list []string
	for _, h := range get[*model.Route](c, model.RouteKey("s", "r")).Config.Headers {
		list = append(list, fmt.Sprintf("%s %q", h.Name, *h.Exact))
	}
	return list
}

func (c config) applyDocument(doc *document.Document) document.Result {
	GinkgoHelper()
	var result document.Result
	_, err := c.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) (err error) {
		result, err = document.Apply(w, doc, document.ApplyOptions{})
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// write runs fn in a transaction that must succeed.
func (c config) write(fn func(store.Writer) error) {
	GinkgoHelper()
	_, err := c.Write(context.Background(), store.Origin{Actor: "test"}, fn)
	Expect(err).NotTo(HaveOccurred())
}

// get returns one stored object.
func get[T model.Object](c config, key model.Key) T {
	GinkgoHelper()
	var obj T
	Expect(c.Read(context.Background(), func(r store.Reader) (err error) {
		obj, err = store.Get[T](r, key)
		return err
	})).To(Succeed())
	return obj
}
