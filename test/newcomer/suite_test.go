package newcomer_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestNewcomer(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with the tests of other packages.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Newcomer")
}

// A newcomer has the program in PATH.
var _ = BeforeSuite(func() {
	bin, err := filepath.Abs("../../bin")
	Expect(err).NotTo(HaveOccurred())
	GinkgoT().Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
})

// limit bounds a command.
func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// write writes a file below dir.
func write(dir, name, text string) {
	GinkgoHelper()
	path := filepath.Join(dir, name)
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
}
