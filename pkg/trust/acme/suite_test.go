package acme

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestACME(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Automatic certificates")
}
