package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

const (
	// mostReads is how many Secrets are read at a time, and readTime how long one may take.
	mostReads = 8
	readTime  = 5 * time.Second
	// pollTime is how often Secrets are read that may be fetched and not listed: no watch tells of their changes.
	pollTime = 20 * time.Second
)

// secrets reads the Secrets and ConfigMaps that objects name, and no others, in a goroutine, so that nothing else waits
// for them. Below, Secret stands for both. It keeps none; the world does. Its methods but run belong to the writer of the
// mirror.
type secrets struct {
	api client.Reader
	// wake has capacity 1 and carries "there are Secrets to read" to run. answered is the signal of the queue: there
	// are answers.
	wake, answered chan struct{}
	// versions are the versions that the API server has reported in metadata.
	versions map[translate.Ref]string
	// again are the Secrets that could not be read; retried is when they were last tried, polled when all were last read.
	again           map[translate.Ref]bool
	retried, polled time.Time

	mu sync.Mutex
	// asked are the Secrets that are to be read, or are being read.
	asked map[translate.Ref]progress
	// answers are the results that the writer has not taken yet.
	answers map[translate.Ref]answer
}

// progress is how far the reading of a Secret is.
type progress int

const (
	waits   progress = iota
	begun            // its request is on the way
	changed          // it changed after its request was sent: the answer may be older
)

func newSecrets(api client.Reader, answered chan struct{}) *secrets {
	return &secrets{
		api: api, wake: make(chan struct{}, 1), answered: answered, versions: map[translate.Ref]string{},
		again: map[translate.Ref]bool{}, asked: map[translate.Ref]progress{}, answers: map[translate.Ref]answer{},
	}
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
	object client.Object
	err    error
}

// watched reports whether the metadata of all objects of a kind is known, and their changes are.
type watched func(kind string) bool

// due lists the Secrets to read again: those that could not be read and, if no watch tells of changes, all that are
// used.
func (s *secrets) due(w *translate.World, watched watched) (refs []translate.Ref) {
	now := time.Now()
	if len(s.again) > 0 && now.Sub(s.retried) >= laterLook {
		s.retried = now
		for ref := range s.again {
			refs = append(refs, ref)
		}
	}
	unwatched := slices.DeleteFunc(w.UsedSecrets(), func(ref translate.Ref) bool { return watched(ref.Kind) })
	switch {
	case len(unwatched) == 0:
		s.polled = time.Time{}
	case s.polled.IsZero():
		s.polled = now
	case now.Sub(s.polled) >= pollTime:
		s.polled = now
		refs = append(refs, unwatched...)
	}
	return refs
}

// ask requests Secrets that have changed, or may have. watched says that the metadata of all Secrets is known: a Secret
// that is not listed there does not exist.
func (s *secrets) ask(w *translate.World, refs []translate.Ref, watched watched) {
	s.mu.Lock()
	for _, ref := range refs {
		if watched(ref.Kind) && s.versions[ref] == "" {
			delete(s.again, ref)
			w.SecretAbsent(ref)
			continue
		}
		if at, known := s.asked[ref]; known && at != waits {
			s.asked[ref] = changed
		} else {
			s.asked[ref] = waits
		}
	}
	some := len(s.asked) > 0
	s.mu.Unlock()
	if some {
		signal(s.wake)
	}
}

// lacking requests Secrets that were never read, and returns how many of them are not there yet.
func (s *secrets) lacking(w *translate.World, refs []translate.Ref, watched watched) (n int) {
	var ask []translate.Ref
	for _, ref := range refs {
		if watched(ref.Kind) && s.versions[ref] == "" {
			w.SecretAbsent(ref)
			continue
		}
		n++
		if !s.isAsked(ref) {
			ask = append(ask, ref)
		}
	}
	s.ask(w, ask, watched)
	return n
}

func (s *secrets) isAsked(ref translate.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, asked := s.asked[ref]
	_, answered := s.answers[ref]
	return asked || answered
}

// take passes the answers to the world.
func (s *secrets) take(w *translate.World) {
	s.mu.Lock()
	answers := s.answers
	s.answers = map[translate.Ref]answer{}
	s.mu.Unlock()
	for ref := range s.again {
		if !w.UsesSecret(ref) {
			delete(s.again, ref)
		}
	}
	for ref, a := range answers {
		delete(s.again, ref)
		switch {
		case a.object != nil:
			w.Upsert(a.object)
		case apierrors.IsNotFound(a.err):
			w.SecretAbsent(ref)
		default:
			s.again[ref] = true
			w.SecretUnreadable(ref, unread(ref.Kind, a.err))
		}
	}
}

// run reads what is asked for until ctx ends.
func (s *secrets) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			s.readAsked(ctx)
		}
	}
}

// readAsked reads all Secrets that wait. When one request gets no answer in time, those that have not begun fail as it
// did: they are tried again, and whoever waits for them waits once, not once for each.
func (s *secrets) readAsked(ctx context.Context) {
	s.mu.Lock()
	var refs []translate.Ref
	for ref, at := range s.asked {
		if at == waits {
			refs = append(refs, ref)
		}
	}
	s.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(mostReads)
	var failed atomic.Pointer[answer]
	for _, ref := range refs {
		group.Go(func() error {
			if a := failed.Load(); a != nil {
				s.answer(ref, *a)
				return nil
			}
			s.begin(ref)
			a := s.get(ctx, ref)
			if a.err != nil && !apierrors.IsNotFound(a.err) && !apierrors.IsForbidden(a.err) {
				failed.Store(&a)
			}
			s.answer(ref, a)
			return nil
		})
	}
	_ = group.Wait()
}

func (s *secrets) begin(ref translate.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[ref] = begun
}

// answer records the result of reading a Secret. One that changed meanwhile is read again.
func (s *secrets) answer(ref translate.Ref, a answer) {
	s.mu.Lock()
	again := s.asked[ref] == changed
	s.answers[ref] = a
	delete(s.asked, ref)
	if again {
		s.asked[ref] = waits
	}
	s.mu.Unlock()
	signal(s.answered)
	if again {
		signal(s.wake)
	}
}

func (s *secrets) get(ctx context.Context, ref translate.Ref) answer {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	object := client.Object(&corev1.Secret{})
	if ref.Kind == translate.KindConfigMap {
		object = &corev1.ConfigMap{}
	}
	if err := s.api.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, object); err != nil {
		return answer{err: err}
	}
	object.SetManagedFields(nil)
	return answer{object: object}
}

// unread says why a Secret cannot be read.
func unread(kind string, err error) string {
	if apierrors.IsForbidden(err) {
		return "the service account may not get " + strings.ToLower(kind) + "s"
	}
	return fmt.Sprintf("the kube-apiserver does not answer: %s", cause(err))
}
