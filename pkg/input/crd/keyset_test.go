package crd_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
)

var _ = Describe("Key sets", func() {
	const document = `
version: 1
keysets:
- keyset_name: Partners
  tags: [sales]
  keys:
  - {key_name: mobile, key_hash: "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", key_description: the app, key_expires: "2027-01-31T00:00:00Z", tags: [app]}
  - {key_name: web, key_hash: "{SHA}C+7Hteo/D9vJXQ3UfzxbwnXaijM="}
filters:
- {filter_name: keys, filter_type: http_filter_apikey, filter_config: {keys: Partners}}
`
	It("become Secrets with their hashes, and come back", func() {
		objects, todo, err := crd.Export(parse(document), crd.ExportOptions{Namespace: "shop"})
		Expect(err).NotTo(HaveOccurred())
		Expect(todo).To(ConsistOf(MatchRegexp(`^delete the entry mobile of Secret partners-[0-9a-f]{8} after 2027-01-31T00:00:00Z: keys of a cluster do not expire$`), MatchRegexp(`^give the clients of key set Partners their keys again: .*"Partners/" at the beginning becomes "shop\.partners-[0-9a-f]{8}/"$`)))
		Expect(objects.Secrets).To(HaveLen(1))
		Expect(objects.Secrets[0].Data).To(HaveKeyWithValue("mobile", []byte("{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=")))
		Expect(objects.Filters[0].Spec.RouteFilterConfig.Config).To(Equal(`{"keys":"` + objects.Secrets[0].Name + `"}`))
		doc, warnings, err := crd.Import(objects, crd.ImportOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
		Expect(encode(doc)).To(Equal(encode(parse(document))))
	})

	It("are refused if a secret has their name", func() {
		_, _, err := crd.Export(parse(document+"secrets:\n- {secret_name: Partners}\n"), crd.ExportOptions{})
		Expect(problemsOf(err)).To(ConsistOf(ContainSubstring("/secret/Partners and /keyset/Partners would both be called partners-")))
	})

	It("are read from the Secrets that RouteFilters name, and refused without one", func() {
		const filter = `
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: keys, namespace: shop}
spec: {type: http_filter_apikey, routeFilterConfig: {config: '{"keys": "partners"}'}}
`
		read := func(text string) (string, error) {
			objects, _, err := crd.Read(strings.NewReader(text))
			Expect(err).NotTo(HaveOccurred())
			doc, warnings, err := crd.Import(objects, crd.ImportOptions{})
			if err != nil {
				return "", err
			}
			return encode(doc) + strings.Join(warnings, "\n"), nil
		}
		text, err := read(filter + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: partners, namespace: shop}\nstringData: {mobile: \"{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\"}\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(And(ContainSubstring("keyset_name: partners"), ContainSubstring("key_name: mobile"),
			ContainSubstring(`Secret shop/partners: give its clients their keys again: in a key, which is base64, "shop.partners/" at the beginning becomes "partners/"`)))
		_, err = read(filter)
		Expect(problemsOf(err)).To(ConsistOf("RouteFilter keys: the Secret shop/partners with the hashes of its keys is not among the objects"))
		_, err = read(filter + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: partners, namespace: shop}\nstringData: {mobile: plain}\n")
		Expect(problemsOf(err)).To(ConsistOf(ContainSubstring("Secret shop/partners: its entry mobile is not a key: Key_hash must be {SHA}")))
	})
})
