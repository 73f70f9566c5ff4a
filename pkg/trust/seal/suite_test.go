package seal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// createVariable names the key file; it makes the test program a process that only
// creates that file.
const createVariable = "SEAL_TEST_CREATE"

func TestMain(m *testing.M) {
	if path := os.Getenv(createVariable); path != "" {
		k, _, err := seal.OpenOrCreate(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		text, _ := k.Seal("text", "place")
		fmt.Print(text)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSeal(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "seal")
}

// The key of fixedKeyset is 0x00 to 0x3f, as bytes 3 to 66 of the value.
const (
	fixedKey    = "EkAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/"
	fixedKeyset = `{"primaryKeyId":16909060,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesSivKey",` +
		`"value":"` + fixedKey + `","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":16909060,"outputPrefixType":"TINK"}]}`
)

// directory returns a temporary directory without symbolic links in its name.
func directory() string {
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return dir
}

// keyFile writes a file that only its owner may read.
func keyFile(content string) string {
	path := filepath.Join(directory(), "secret.key")
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func newKeyring() (k *seal.Keyring, path string) {
	path = filepath.Join(directory(), "secret.key")
	k, created, err := seal.OpenOrCreate(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(created).To(BeTrue())
	return k, path
}

func open(path string) *seal.Keyring {
	k, err := seal.Open(path)
	Expect(err).NotTo(HaveOccurred())
	return k
}

func sealed(k *seal.Keyring, plain, context string) string {
	text, err := k.Seal(plain, context)
	Expect(err).NotTo(HaveOccurred())
	return text
}

func unsealed(k *seal.Keyring, text, context string) string {
	plain, err := k.Unseal(text, context)
	Expect(err).NotTo(HaveOccurred())
	return plain
}

// primary returns the number of the key that seals.
func primary(path string) uint32 {
	GinkgoHelper()
	id, err := open(path).Primary()
	Expect(err).NotTo(HaveOccurred())
	return id
}

func content(path string) string {
	GinkgoHelper()
	b, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}
