package kube

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-gateway/gatehouse/pkg/kube/translate"
)

const (
	// mostReads is how many Secrets are read at a time, and readTime how long one may take.
	mostReads = 8
	readTime  = 5 * time.Second
)

// secrets reads the Secrets that objects name, and no others. It keeps none; the world does. It belongs to one
// goroutine.
type secrets struct {
	api client.Reader
	// versions are the versions that the API server has reported in metadata.
	versions map[translate.Ref]string
	// again are the Secrets that could not be read.
	again map[translate.Ref]bool
}

func newSecrets(api client.Reader) *secrets {
	return &secrets{api: api, versions: map[translate.Ref]string{}, again: map[translate.Ref]bool{}}
}

// setVersion records that a Secret has a version, or is gone (nil).
func (s *secrets) setVersion(ref translate.Ref, metadata client.Object) {
	if metadata == nil {
		delete(s.versions, ref)
		return
	}
	s.versions[ref] = metadata.GetResourceVersion()
}

// answer is the result of reading a Secret.
type answer struct {
	secret *corev1.Secret
	err    error
}

// read reads Secrets into the world. known says that the metadata of all Secrets has arrived: a Secret that is not
// listed there does not exist.
func (s *secrets) read(ctx context.Context, w *translate.World, refs []translate.Ref, known bool) {
	answers := make([]answer, len(refs))
	var group errgroup.Group
	group.SetLimit(mostReads)
	for i, ref := range refs {
		if known && s.versions[ref] == "" {
			continue
		}
		group.Go(func() error {
			answers[i] = s.get(ctx, ref)
			return nil
		})
	}
	_ = group.Wait()
	for i, ref := range refs {
		delete(s.again, ref)
		switch a := answers[i]; {
		case a.secret != nil:
			w.Upsert(a.secret)
		case a.err == nil || apierrors.IsNotFound(a.err):
			w.SecretAbsent(ref)
		default:
			s.again[ref] = true
			w.SecretUnreadable(ref, unread(a.err))
		}
	}
}

func (s *secrets) get(ctx context.Context, ref translate.Ref) answer {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	secret := &corev1.Secret{}
	if err := s.api.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return answer{err: err}
	}
	secret.ManagedFields = nil
	return answer{secret: secret}
}

// unread says why a Secret cannot be read.
func unread(err error) string {
	if apierrors.IsForbidden(err) {
		return "the service account may not get secrets"
	}
	return fmt.Sprintf("the kube-apiserver does not answer: %s", cause(err))
}
