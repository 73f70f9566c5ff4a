package standalone_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestStandalone(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with the tests of other packages.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "standalone")
}
