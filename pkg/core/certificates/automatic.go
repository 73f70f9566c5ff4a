package certificates

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// lateShare is the part of its life after which an automatic certificate should have been renewed: the last sixth is left
// for failed attempts.
const lateShare = 6

// applyAutomatic keeps who has an automatic certificate, with nil until the authority has issued it.
func (s *Set) applyAutomatic(all map[model.Key]*model.Automatic) {
	for key, a := range all {
		switch {
		case a == nil:
			delete(s.automatic, key)
		case a.Placeholder:
			s.automatic[key] = nil
		default:
			s.automatic[key] = a.Secret
		}
	}
}

// automaticConditions returns the conditions of automatic certificates that are late, and when they next change.
func (s *Set) automaticConditions(now time.Time) (list []model.Condition, until time.Time) {
	for _, key := range slices.SortedFunc(maps.Keys(s.automatic), comparePaths) {
		secret := s.automatic[key]
		if secret == nil {
			continue
		}
		leaf := secret.Leaf()
		next, code, when := leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore)/lateShare), model.CertificateExpires, "ends on "
		if !now.Before(next) {
			if next = leaf.NotAfter; !now.Before(next) {
				code, when = model.CertificateExpired, "expired on "
			}
			list = append(list, model.Condition{Key: key, Code: code, Message: fmt.Sprintf(
				"the automatic certificate %s%s: it should have been renewed; gatehouse certificate list says why it was not",
				when, leaf.NotAfter.UTC().Format(time.RFC3339))})
		}
		if now.Before(next) && (until.IsZero() || next.Before(until)) {
			until = next
		}
	}
	return list, until
}
