package replicas

import (
	"context"
	"time"
)

// Board is where the replicas of one installation leave posts for each other.
// Its methods are called by one goroutine at a time.
type Board interface {
	// Publish leaves a post in place of the last one of this replica, and tells
	// the others. It also says that the replica lives.
	Publish(ctx context.Context, p Post) error
	// Beat says that the replica lives and that its post holds. It reports whether
	// the board still has the post; if not, the caller publishes it again.
	Beat(ctx context.Context, replica string) (kept bool, err error)
	// Read returns what the others have left, and as kept whether the post of this
	// replica is still there; if not, the caller publishes it again. A replica that
	// is not in the list has not ended: a database may lose posts. have tells which
	// versions the caller has: what these hold need not be returned again. What is
	// older than Pace.Forget is removed.
	Read(ctx context.Context, replica string, have map[string]Versions) (list []Notice, kept bool, err error)
	// End says that this replica has ended, with the streams of its Envoys.
	End(ctx context.Context, replica string) error
	// Bury says for another replica that it has ended, unless its last sign of life is
	// younger than Pace.Gone. If it lives, its Beat reports that its post is not kept.
	Bury(ctx context.Context, replica string) error
	// Changed receives, without content, after another replica may have published
	// a post or ended. It has capacity 1 and one reader. A signal may be lost:
	// the reader also reads every Pace.Read.
	Changed() <-chan struct{}
	// Pace says how often to do all this.
	Pace() Pace
}

// Pace is how often a Board is used.
type Pace struct {
	// Publish is the least time between two reports of a replica.
	Publish time.Duration
	// Beat is the time between two signs of life.
	Beat time.Duration
	// Read is the time between two reads without a signal.
	Read time.Duration
	// Unheard is how old the last sign of life of a replica may be. After that
	// nobody knows what its Envoys have.
	Unheard time.Duration
	// Gone is how old it is when the process is taken for dead. Only those of its Envoys
	// count then that have not connected to another replica since.
	Gone time.Duration
	// Forget is how old it is when the replica is forgotten with all its Envoys.
	Forget time.Duration
}

// DefaultPace is that of the boards that there are. A report waits for half a second,
// so that many answers of Envoys are one write. Two signs of life in a row may be lost
// before a replica is not heard. The Envoys of one that has died connect elsewhere within
// seconds; those of one that is only cut off from the board do not.
func DefaultPace() Pace {
	return Pace{
		Publish: 500 * time.Millisecond, Beat: 5 * time.Second, Read: 5 * time.Second,
		Unheard: 15 * time.Second, Gone: time.Minute, Forget: 10 * time.Minute,
	}
}

// Versions number what a replica has posted. They only grow.
type Versions struct{ Report, Mail int64 }

// Post is what a replica leaves on a Board.
type Post struct {
	Replica string
	Versions
	// Report is a Report as Encode writes it; nil means that the last one holds.
	Report []byte
	// Mail is for those that wait for each other's Envoys, likewise. A board on
	// which nobody waits may leave it out.
	Mail []byte
}

// Notice is a post of another replica as it is read.
type Notice struct {
	Post
	// Age is how long ago the replica gave its last sign of life, by the clock of
	// the board or by that of the reader; never by that of the replica.
	Age time.Duration
	// Ended says that the replica has ended in good order. Nothing else is set then
	// but its name.
	Ended bool
}
