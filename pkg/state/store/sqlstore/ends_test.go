package sqlstore_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = DescribeTable("Secrets whose certificates end before a time are listed", func(ctx SpecContext, locate func(context.Context) string) {
	s := openStore(ctx, locate(ctx))
	ca, err := testkit.NewAuthority("root")
	Expect(err).NotTo(HaveOccurred())
	end := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
		for name, at := range map[string]time.Time{"early": end.Add(-time.Second), "late": end} {
			p, err := ca.Issue(testkit.CertificateOptions{Names: []string{"a.example"}, NotAfter: at})
			if err != nil {
				return err
			}
			if err := w.Insert(&model.Secret{Name: name, Cert: p.Cert}); err != nil {
				return err
			}
		}
		return w.Insert(&model.Secret{Name: "empty"})
	})
	Expect(err).NotTo(HaveOccurred())
	names := func(before time.Time, zone int) (list []string) {
		GinkgoHelper()
		Expect(s.Read(ctx, func(r store.Reader) error {
			found, err := r.List(store.Query{Kind: model.KindSecret, EndsBefore: model.At(before.In(time.FixedZone("", zone)))})
			for _, o := range found {
				list = append(list, o.Key().Name())
			}
			return err
		})).To(Succeed())
		return list
	}
	Expect(names(end.Add(-time.Second), 0)).To(BeEmpty())
	Expect(names(end.Add(-time.Microsecond), 0)).To(Equal([]string{"early"}))
	Expect(names(end, 5*60*60)).To(Equal([]string{"early"}))
	Expect(names(end.Add(time.Microsecond), 0)).To(ConsistOf("early", "late"))
	Expect(names(time.Time{}, 0)).To(ConsistOf("early", "late", "empty"))
},
	Entry("in SQLite", newSQLite),
	Entry("in Postgres", newPostgres),
)
