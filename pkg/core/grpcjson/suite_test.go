package grpcjson_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestGRPCJSON(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Calls with JSON")
}
