package replicas_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// halfBoard can be read, and written only while it is not readOnly.
type halfBoard struct {
	readOnly     atomic.Bool
	writes, read atomic.Int64
	changed      chan struct{}
}

func (b *halfBoard) write() error {
	b.writes.Add(1)
	if b.readOnly.Load() {
		return errors.New("read-only")
	}
	return nil
}

func (b *halfBoard) Publish(context.Context, replicas.Post) error        { return b.write() }
func (b *halfBoard) Beat(context.Context, string) (kept bool, err error) { return true, b.write() }
func (b *halfBoard) Bury(context.Context, string) error                  { return b.write() }
func (b *halfBoard) End(context.Context, string) error                   { return b.write() }
func (b *halfBoard) Changed() <-chan struct{}                            { return b.changed }

func (b *halfBoard) Read(context.Context, string, map[string]replicas.Versions) ([]replicas.Notice, bool, error) {
	b.read.Add(1)
	return nil, true, nil
}

func (b *halfBoard) Pace() replicas.Pace {
	quick := 2 * time.Millisecond
	return replicas.Pace{Publish: quick, Beat: quick, Read: quick, Unheard: time.Hour, Gone: time.Hour, Forget: time.Hour}
}

var _ = Describe("A board that can be read but not written", func() {
	It("is reported once, until it can be written again", func() {
		board, log := &halfBoard{changed: make(chan struct{}, 1)}, &testkit.Output{}
		hub := replicas.New(replicas.Options{
			Replica: "a", Board: board, Registry: status.NewRegistry(), Log: slog.New(slog.NewTextHandler(log, nil)), Report: func() replicas.Report { return replicas.Report{} },
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		hub.Join(ctx)
		go func() { done <- hub.Run(ctx) }()
		DeferCleanup(func() {
			cancel()
			Eventually(done).Should(Receive(BeNil()))
		})
		logged := func(text string) int { return strings.Count(log.String(), text) }
		const warning, again = "what the replicas know of each other is outdated", "the replicas hear of each other again"

		Eventually(board.read.Load).Should(BeNumerically(">", 5))
		board.readOnly.Store(true)
		writes, reads := board.writes.Load(), board.read.Load()
		Eventually(board.writes.Load).Should(BeNumerically(">", writes+50))
		Eventually(board.read.Load).Should(BeNumerically(">", reads+50))
		Expect(logged(warning)).To(Equal(1), log.String())
		Expect(logged(again)).To(BeZero(), log.String())

		board.readOnly.Store(false)
		Eventually(logged).WithArguments(again).Should(Equal(1))
		board.readOnly.Store(true)
		Eventually(logged).WithArguments(warning).Should(Equal(2))
	})
})
