package importer_test

import (
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/importer"
)

var _ = Describe("A file of htpasswd", func() {
	const ann, bob = "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", "bob@acme.test:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="
	const form = "the password is in a form that Envoy does not verify: "

	It("has users with the hashes of their passwords", func() {
		users, err := importer.ReadHtpasswd([]byte("# staff\r\n\n" + bob + "\r\n " + ann + "\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(users).To(Equal([]importer.HashedUser{
			{Name: "ann", Hash: "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="}, {Name: "bob@acme.test", Hash: "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="},
		}))
	})

	DescribeTable("names each line that it refuses, without what it has, and keeps the others", func(line, want string) {
		users, err := importer.ReadHtpasswd([]byte(ann + "\n" + line + "\n" + bob))
		var e *importer.Error
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect(e.Problems).To(HaveLen(1))
		Expect(e.Problems[0].String()).To(HavePrefix("line 2: " + want))
		Expect(err.Error()).NotTo(Or(ContainSubstring("s3cret"), ContainSubstring("{SHA}q"), ContainSubstring("5en6")))
		Expect(users).To(HaveLen(2))
	},
		Entry("bcrypt", "cay:$2y$05$s3cretxxxxxxxxxxxxxxxxxxxx", "cay: "+form+"bcrypt. Only SHA-1 works, as htpasswd -s writes it"),
		Entry("apr1", "cay:$apr1$s3cret$abc", "cay: "+form+"MD5 (apr1)."),
		Entry("crypt with MD5", "cay:$1$s3cret$abc", "cay: "+form+"MD5 (crypt)."),
		Entry("crypt with SHA-256", "cay:$5$s3cret$abc", "cay: "+form+"SHA-256 (crypt)."),
		Entry("crypt with SHA-512", "cay:$6$s3cret$abc", "cay: "+form+"SHA-512 (crypt)."),
		Entry("salted SHA-1", "cay:{SSHA}s3cret", "cay: "+form+"salted SHA-1."),
		Entry("half a SHA-1", "cay:{SHA}s3cret", "cay: "+form+"no valid SHA-1."),
		Entry("SHA-1 and more", "cay:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=:s3cret", "cay: "+form+"no valid SHA-1."),
		Entry("crypt", "cay:s3cretabcdefg", "cay: "+form+"crypt, or a password that is not hashed."),
		Entry("nothing", "cay:", "cay: "+form),
		Entry("no colon", "s3cret", "this is not NAME:HASH"),
		Entry("a name with a space", "cay jones:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "this is not NAME:HASH"),
		Entry("the same user", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "ann: is in the file twice"),
	)

	It("is bounded", func() {
		_, err := importer.ReadHtpasswd([]byte(strings.Repeat("#", 1<<20+1)))
		Expect(err).To(MatchError("the file has more than 1 MiB"))
		_, err = importer.ReadHtpasswd([]byte("# nobody\n"))
		Expect(err).To(MatchError("the file has no users"))
	})
})
