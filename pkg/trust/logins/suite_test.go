package logins_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestLogins(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Logins")
}
