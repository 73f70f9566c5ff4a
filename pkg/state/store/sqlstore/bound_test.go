package sqlstore_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

var _ = DescribeTable("A transaction may take long if it makes progress, and the error names what others wait for",
	func(ctx SpecContext, newURL func(context.Context) string) {
		const bound = time.Second
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: newURL(ctx)})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(s.Close)
		sqlstore.SetStepTimeout(s, bound)
		began := time.Now()
		var waited error
		second := make(chan error, 1)
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			go func() { second <- addProxy(ctx, s, "second") }()
			for i := 0; len(second) == 0 || time.Since(began) < 2*bound; i++ {
				if _, err := w.Get(model.ProxyKey(fmt.Sprint(i))); !model.IsKind(err, model.NotFound) {
					return err
				}
			}
			waited = <-second
			sqlstore.SetStepTimeout(s, time.Minute) // a disk may take long for what follows
			return w.Insert(&model.Proxy{Name: "first"})
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(waited).To(MatchError(HavePrefix("a step of the transaction took longer than 1s and was canceled; nothing was stored")))
		Expect(model.IsKind(waited, model.Unavailable)).To(BeTrue())
		Expect(addProxy(ctx, s, "third")).To(Succeed())
	},
	Entry("SQLite", newSQLite),
	Entry("Postgres", newPostgres),
)
