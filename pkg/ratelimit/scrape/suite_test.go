package scrape_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestScrape(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Metrics of the stock engine")
}
