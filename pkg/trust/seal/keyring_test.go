package seal_test

import (
	"fmt"
	"os"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// What another implementation of RFC 5297 returned for "hunter2" at the place
// secret/shop/value, after tink's prefix 01 and the key's number 01020304.
const fixedSealed = "sealed:v1:AQECAwQct5gBPMFm940uynRzyxWlYeSPEcmA7Q"

var _ = Describe("sealing", func() {
	It("produces a text whose format never changes", func() {
		k := open(keyFile(fixedKeyset))
		Expect(sealed(k, "hunter2", "secret/shop/value")).To(Equal(fixedSealed))
		Expect(unsealed(k, fixedSealed, "secret/shop/value")).To(Equal("hunter2"))
	})

	DescribeTable("returns", func(plain string) {
		k, _ := newKeyring()
		text := sealed(k, plain, "secret/shop/value")
		Expect(text).To(MatchRegexp(`^sealed:v1:[A-Za-z0-9_-]+$`))
		Expect(unsealed(k, text, "secret/shop/value")).To(Equal(plain))
	},
		Entry("a word", "hunter2"),
		Entry("nothing", ""),
		Entry("any bytes", "\x00\xff\n\"ü"),
		Entry("a megabyte", strings.Repeat("x", 1<<20)),
	)

	It("produces the same text for the same input, and another one for anything else", func() {
		k, path := newKeyring()
		text := sealed(k, "hunter2", "secret/shop/value")
		Expect(sealed(k, "hunter2", "secret/shop/value")).To(Equal(text))
		Expect(sealed(open(path), "hunter2", "secret/shop/value")).To(Equal(text))
		Expect(sealed(k, "hunter3", "secret/shop/value")).NotTo(Equal(text))
		Expect(sealed(k, "hunter2", "secret/blog/value")).NotTo(Equal(text))
	})

	It("does not print its keys", func() {
		k := open(keyFile(fixedKeyset))
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			text := fmt.Sprintf(format, k)
			Expect(text).NotTo(Or(ContainSubstring("1 2 3 4 5 6"), ContainSubstring("010203"), ContainSubstring(fixedKey), ContainSubstring("0x1, 0x2, 0x3")))
		}
	})
})

var _ = Describe("a sealed text", func() {
	expectRefused := func(k *seal.Keyring, text, context, line string) {
		GinkgoHelper()
		plain, err := k.Unseal(text, context)
		Expect(plain).To(BeEmpty())
		Expect(err).To(MatchError(line))
		Expect(model.IsKind(err, model.Invalid)).To(BeTrue())
	}
	closed := func(path string) string {
		return "the sealed text does not open (it was sealed with another key or for another place, or was changed; " +
			"give the key file that it was sealed with, or the secret again): no key of " + path + " opens it"
	}
	const noSealedText = "the text is not a sealed text (a sealed text is sealed:v1: and base64url without padding, as it was read)"

	It("does not open for another object", func() {
		path := keyFile(fixedKeyset)
		expectRefused(open(path), fixedSealed, "secret/blog/value", closed(path))
		expectRefused(open(path), fixedSealed, "", closed(path))
	})

	It("does not open with another key", func() {
		k, path := newKeyring()
		expectRefused(k, fixedSealed, "secret/shop/value", closed(path))
	})

	It("does not open if any character was changed", func() {
		path := keyFile(fixedKeyset)
		k := open(path)
		for i := len("sealed:v1:"); i < len(fixedSealed); i++ {
			other := byte('A')
			if fixedSealed[i] == other {
				other = 'B'
			}
			_, err := k.Unseal(fixedSealed[:i]+string(other)+fixedSealed[i+1:], "secret/shop/value")
			Expect(model.IsKind(err, model.Invalid)).To(BeTrue(), "character %d", i)
		}
	})

	DescribeTable("is refused when it is", func(text string) {
		expectRefused(open(keyFile(fixedKeyset)), text, "secret/shop/value", noSealedText)
	},
		Entry("empty", ""),
		Entry("in the clear", "hunter2"),
		Entry("without its prefix", "AQECAwQct5gBPMFm940uynRzyxWlYeSPEcmA7Q"),
		Entry("of another version", "sealed:v2:AQECAwQct5gBPMFm940uynRzyxWlYeSPEcmA7Q"),
		Entry("with padding", "sealed:v1:AQECAwQct5gBPMFm940uynRzyxWlYeSPEcmA7Q=="),
		Entry("with a line feed, which decodes to the same", "sealed:v1:AQECAwQct5gBPMFm940uynRzyxWlYeSPEcmA7Q\n"),
		Entry("with other unused bits, which decodes to the same", "sealed:v1:AQECAwQct5gBPMFm940uynRzyxWlYeSPEcmA7R"),
	)

	DescribeTable("does not open if it is truncated", func(text string) {
		path := keyFile(fixedKeyset)
		expectRefused(open(path), text, "secret/shop/value", closed(path))
	},
		Entry("to the prefix", "sealed:v1:"),
		Entry("to the key's ID", "sealed:v1:AQECAwQ"),
		Entry("in the middle", "sealed:v1:AQECAwQct5gBPMFm940uynRz"),
	)
})

var _ = Describe("a missing key file", func() {
	It("stops sealing, while sealed texts still open", func() {
		path := keyFile(fixedKeyset)
		k := open(path)
		Expect(os.Remove(path)).To(Succeed())

		_, err := k.Seal("hunter2", "secret/shop/value")
		missing := "the key file " + path + " does not exist (restore it, or name the right one with --secret-key-file: nothing else opens what was sealed with it)"
		Expect(err).To(MatchError(missing))
		Expect(model.IsKind(err, model.Unavailable)).To(BeTrue())
		Expect(k.Reload()).To(MatchError(missing))
		Expect(unsealed(k, fixedSealed, "secret/shop/value")).To(Equal("hunter2"))

		_, err = k.Unseal(fixedSealed, "secret/blog/value")
		Expect(err).To(MatchError(missing))

		Expect(os.WriteFile(path, []byte(fixedKeyset), 0o600)).To(Succeed())
		Expect(sealed(k, "hunter2", "secret/shop/value")).To(Equal(fixedSealed))
	})
})

var _ = It("serves many goroutines while the keys rotate", func() {
	k, path := newKeyring()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			defer GinkgoRecover()
			for range 50 {
				Expect(unsealed(k, sealed(k, "hunter2", "place"), "place")).To(Equal("hunter2"))
			}
		})
	}
	for range 4 {
		all.Go(func() {
			defer GinkgoRecover()
			Expect(seal.Rotate(path)).To(Succeed())
			Expect(k.Reload()).To(Succeed())
		})
	}
	all.Wait()
})
