package status

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// The times of the Lease, the same as in Kubernetes' own programs: a killed leader is replaced after 15 s.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Election determines which replica of an installation writes.
type Election struct {
	Config *rest.Config
	// Namespace and Name are the Lease's.
	Namespace, Name string
	// Identity is the name of this replica.
	Identity string
	Log      *slog.Logger
	// Fault is called with the reason why the Lease cannot be read or written, and with an empty text once it can
	// again.
	Fault func(message string)
}

// Lead runs work while this replica holds the Lease, again and again until ctx ends. It releases the Lease after work
// has returned. (A manager of controller-runtime would end the process when it loses the Lease, and Envoys with it.)
func (e Election) Lead(ctx context.Context, work func(context.Context)) error {
	config := rest.CopyConfig(e.Config)
	config.Timeout = renewDeadline / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the Lease: %w", err)
	}
	lock := &faultyLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity}, Labels: map[string]string{leaseLabel: ""},
		},
		fault: e.Fault,
	}
	for ctx.Err() == nil {
		if err := e.term(ctx, lock, work); err != nil {
			return err
		}
	}
	return nil
}

// term holds the Lease once, or returns when ctx ends.
func (e Election) term(ctx context.Context, lock resourcelock.Interface, work func(context.Context)) error {
	// The Lease is held beyond ctx until work has returned.
	holding, release := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer release()
	var mu sync.Mutex
	leading := false
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: e.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				defer close(ended)
				defer release()
				mu.Lock()
				leading = true
				mu.Unlock()
				if ctx.Err() != nil {
					return
				}
				e.Log.Info("this replica writes the conditions", "lease", e.Namespace+"/"+e.Name)
				working, stop := context.WithCancel(ctx)
				defer context.AfterFunc(held, stop)()
				defer stop()
				work(working)
				e.Log.Info("this replica no longer writes the conditions", "lease", e.Namespace+"/"+e.Name)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("electing who writes the conditions: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !leading { // otherwise work returns, and releases it
			release()
		}
	})()
	elector.Run(holding)
	mu.Lock()
	wait := leading
	mu.Unlock()
	if wait {
		<-ended
	}
	return nil
}

// faultyLock reports why a Lease cannot be used.
type faultyLock struct {
	resourcelock.Interface
	fault func(string)
}

func (l *faultyLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return record, raw, l.note(ctx, err)
}

func (l *faultyLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(ctx, l.Interface.Create(ctx, r))
}

func (l *faultyLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(ctx, l.Interface.Update(ctx, r))
}

// note reports an error, unless it only means that another replica was faster.
func (l *faultyLock) note(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
	case err != nil:
		l.fault(fmt.Sprintf("conditions are not written: the Lease %s cannot be used: %v", l.Describe(), err))
	default:
		l.fault("")
	}
	return err
}
