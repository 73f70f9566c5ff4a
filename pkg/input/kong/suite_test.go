package kong_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestKong(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Files of Kong")
}
