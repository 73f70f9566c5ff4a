package sqlstore_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

var _ = DescribeTable("A helper of a load", func(ctx SpecContext, url func(context.Context) string) {
	s := openStore(ctx, url(ctx))
	mark := func() (mark model.Mark) {
		GinkgoHelper()
		Expect(s.Read(ctx, func(r store.Reader) (err error) {
			mark, err = r.Mark()
			return err
		})).To(Succeed())
		return mark
	}
	Expect(addProxy(ctx, s, "gw")).To(Succeed())
	first := mark()
	Expect(sqlstore.HelpsAt(ctx, s, first)).To(BeTrue())
	By("not if somebody has written since the load began")
	Expect(addProxy(ctx, s, "other")).To(Succeed())
	Expect(sqlstore.HelpsAt(ctx, s, first)).To(BeFalse())
	Expect(sqlstore.HelpsAt(ctx, s, mark())).To(BeTrue())
	By("not if the database is another one, with the same revision number")
	Expect(sqlstore.HelpsAt(ctx, s, model.Mark{Revision: 2, ID: first.ID})).To(BeFalse())
	By("not without a connection")
	Expect(s.Close()).To(Succeed())
	Expect(sqlstore.HelpsAt(ctx, s, first)).To(BeFalse())
},
	Entry("SQLite", newSQLite),
	Entry("Postgres", newPostgres),
)
