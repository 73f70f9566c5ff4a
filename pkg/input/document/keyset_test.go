package document_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

var _ = Describe("Key sets in a document", func() {
	const text = `version: 1
keysets:
- keyset_name: partners
  keys:
  - key_name: mobile
    key_hash: '{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk='
    key_description: the app
    tags:
    - phone
  - key_name: web
    key_hash: '{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk='
- keyset_name: staff
  tags:
  - shop
  keys: []
`

	It("read back as they were applied, with the hashes of their keys", func() {
		c := configOf(text)
		Expect(c.dump(document.WriteOptions{})).To(Equal(text))
		Expect(c.dump(document.WriteOptions{Sealed: true})).To(Equal(text))
		inJSON := c.dump(document.WriteOptions{JSON: true})
		Expect(configOf(inJSON).dump(document.WriteOptions{})).To(Equal(text))
		Expect(c.applied(text, document.ApplyOptions{Prune: true})).To(Equal(document.Result{Unchanged: 4}))
	})

	It("lose what the document does not name, if prune is set", func() {
		c := configOf(text)
		const fewer = "version: 1\nkeysets:\n- keyset_name: partners\n  keys:\n  - key_name: web\n    key_hash: '{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk='\n"
		Expect(c.applied(fewer, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 2}))
		Expect(c.dump(document.WriteOptions{})).To(Equal(text))
		Expect(c.applied(fewer, document.ApplyOptions{Prune: true})).To(Equal(document.Result{Unchanged: 2, Deleted: 2}))
		Expect(c.dump(document.WriteOptions{})).To(Equal(fewer))
	})

	It("require the hash of each key", func() {
		_, _, err := configOf().apply("version: 1\nkeysets:\n- keyset_name: partners\n  keys:\n  - key_name: web\n", document.ApplyOptions{})
		Expect(messages(err)).To(Equal([]string{
			`line 5: keysets["partners"].keys["web"].key_hash: must be {SHA} and the base64 of the SHA-1 of the secret; POST without it makes a key`,
		}))
	})
})
