package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
)

const (
	// workers is how many patches are in flight at a time, perSecond how many begin: 2,000 objects take 20 s, and the API
	// server has capacity for others.
	workers, perSecond = 8, 100
	// requestTimeout bounds a patch. It is shorter than the remaining time of a Lease when its leader gives up.
	requestTimeout = 4 * time.Second
	// roundEvery is the least time between two looks at all objects; roundShare is that time as a multiple of the duration
	// of a look.
	roundEvery, roundShare = 250 * time.Millisecond, 5
)

// Ref names an object.
type Ref struct{ Kind, Namespace, Name string }

func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Object is an object that belongs to this installation, with what is known of it.
type Object struct {
	Ref
	UID types.UID
	// ResourceVersion is the version in which Status was read.
	ResourceVersion int64
	// Status is its current status.
	Status gatewayv1.Status
	// API makes the status of an object of the Gateway API; nil for others. Its status is API's, not Status.
	API Shape
	// Facts are about the generation that this replica has built.
	Facts conditions.Facts
	// Pending says that there are no Facts yet: the newest generation was not built here.
	Pending bool
}

// Options of a Writer. All are required.
type Options struct {
	Config *rest.Config
	// Controller is the name of this installation in a status, that of its Lease.
	Controller string
	// Look returns all objects that belong to this installation; ok is false if they are not known now. One goroutine
	// calls it.
	Look func(ctx context.Context) (objects []Object, ok bool)
	// Changed receives when Look may return something else. It has capacity 1 and one reader.
	Changed <-chan struct{}
	// Fault is called with the reason why the status of a kind cannot be written, and with an empty text once it can
	// again.
	Fault func(kind, message string)
	Log   *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Writer writes the result of Options.Look into the status of the objects. Use New.
type Writer struct {
	opts   Options
	client dynamic.Interface
}

// New returns a Writer.
func New(o Options) (*Writer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // the Writer paces itself
	config.Timeout = requestTimeout
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the status of objects: %w", err)
	}
	return &Writer{opts: o, client: client}, nil
}

const fieldManager = "gatehouse"

// result is how a patch ended.
type result struct {
	job
	version int64
	// unnamed says that the API server left out who wrote the status: the CRD is older than the field.
	unnamed bool
	err     error
}

// Run writes until ctx ends. It returns when no patch is in flight.
func (w *Writer) Run(ctx context.Context) {
	q := newQueue(w.opts.Controller)
	done := make(chan result)
	running := 0
	defer func() {
		for ; running > 0; running-- {
			<-done
		}
	}()
	look := time.NewTimer(0) // when to look again
	defer look.Stop()
	next := time.NewTimer(0) // when the next patch may begin
	defer next.Stop()
	lastLook, every, pace := time.Time{}, roundEvery, w.opts.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.opts.Changed:
			look.Reset(max(0, every-w.opts.Now().Sub(lastLook)))
		case <-look.C:
			began := w.opts.Now()
			again := time.Duration(0)
			if objects, ok := w.opts.Look(ctx); ok {
				again = q.take(objects, began)
			}
			lastLook = w.opts.Now()
			every = max(roundEvery, roundShare*lastLook.Sub(began))
			if again > 0 {
				look.Reset(max(again, every))
			}
		case r := <-done:
			running--
			w.settle(q, r)
		case <-next.C:
		}
		for now := w.opts.Now(); running < workers; {
			if now.Before(pace) {
				next.Reset(pace.Sub(now))
				break
			}
			job, wait := q.next(now)
			if job == nil {
				if wait > 0 {
					next.Reset(wait)
				}
				break
			}
			pace = maxTime(pace, now.Add(-time.Second/10)).Add(time.Second / perSecond)
			running++
			go func() { done <- w.write(ctx, *job) }()
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// write patches the status of one object.
func (w *Writer) write(ctx context.Context, j job) result {
	r := result{job: j}
	// An object that was created again under the name is a different one. (A merge patch of a status ignores the uid.)
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": j.uid}}
	if j.claims > 0 { // another installation may claim it, too
		version := strconv.FormatInt(j.claims, 10)
		patch = append(patch, map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": version})
	}
	body, err := json.Marshal(append(patch, map[string]any{"op": "add", "path": "/status", "value": j.value()}))
	if err != nil {
		r.err = err
		return r
	}
	o, err := w.client.Resource(resourceOf(j)).Namespace(j.ref.Namespace).
		Patch(ctx, j.ref.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		r.err = err
		return r
	}
	r.version = ParseVersion(o.GetResourceVersion())
	controller, _, _ := unstructured.NestedString(o.Object, "status", "controller")
	r.unnamed = j.api == nil && controller != j.status.Controller
	return r
}

// isTestFailed reports whether an object is not what a patch tests. The API server says only that it cannot apply the
// patch; it names the object if it finds its status invalid.
func isTestFailed(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) {
		return false
	}
	details := answer.Status().Details
	return details == nil || details.Name == ""
}

// settle records how a patch ended.
func (w *Writer) settle(q *queue, r result) {
	now := w.opts.Now()
	switch {
	case r.err == nil:
		if r.unnamed && !q.unnamed[r.ref.Kind] {
			q.unnamed[r.ref.Kind] = true
			w.opts.Log.Warn("the CustomResourceDefinition of a kind is older than this program: apply those of its chart",
				"kind", r.ref.Kind)
		}
		q.wrote(r.job, r.version, now)
		w.opts.Fault(r.ref.Kind, "")
	case apierrors.IsNotFound(r.err), isTestFailed(r.err):
		// It is gone, was replaced by a new one, or is not as it was when this installation claimed it.
		q.drop(r.job)
	case apierrors.IsForbidden(r.err):
		q.retry(r.job, time.Time{})
		q.forbidden[r.ref.Kind] = now.Add(forbiddenWait)
		w.opts.Fault(r.ref.Kind, fmt.Sprintf(
			"conditions are not written: this program may not patch %s/status of group %s: %v", resourceOf(r.job).Resource,
			resourceOf(r.job).Group, r.err))
	case apierrors.IsInvalid(r.err), apierrors.IsBadRequest(r.err):
		q.retry(r.job, now.Add(refusedWait))
		w.opts.Log.Error("the status of an object is refused", "object", r.ref.String(), "err", r.err)
	default: // the API server does not answer or is overloaded
		q.away(r.job, now)
		w.opts.Log.Debug("the status of an object is not written, trying again", "object", r.ref.String(), "err", r.err)
	}
}
