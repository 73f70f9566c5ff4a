package pipeline_test

import (
	"flag"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// update writes the golden files instead of comparing them (make golden).
var update = flag.Bool("update", false, "write the golden files again")

func TestPipeline(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Build")
}
