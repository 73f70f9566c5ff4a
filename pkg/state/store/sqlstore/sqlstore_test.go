package sqlstore_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

func TestSQLStore(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "sqlstore")
}

// server is the PostgreSQL of the suite; each spec has a database of its own.
var server *postgres.Server

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	server, err = postgres.Start(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return server.Stop() })
})
