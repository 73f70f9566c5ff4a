package replicas

import (
	"context"
	"time"
)

// Board is where the replicas of one installation leave posts for each other. One
// goroutine at a time calls its methods.
type Board interface {
	// Publish replaces this replica's last post, and signals the others. It also is a
	// sign of life.
	Publish(ctx context.Context, p Post) error
	// Beat is a sign of life that leaves the post unchanged. It reports whether the board
	// still has the post; if not, the caller publishes it again.
	Beat(ctx context.Context, replica string) (kept bool, err error)
	// Read returns the posts of the others, and as kept whether the post of this replica
	// still exists; if not, the caller publishes it again. A replica that is missing from
	// the list has not ended: a database may lose posts. have has the caller's versions:
	// their content need not be returned again. Posts older than Pace.Forget are removed.
	Read(ctx context.Context, replica string, have map[string]Versions) (list []Notice, kept bool, err error)
	// End says that this replica has ended, with the streams of its Envoys.
	End(ctx context.Context, replica string) error
	// Bury records for another replica that it has ended, unless its last sign of life is
	// younger than Pace.Gone. If it lives, its Beat reports that its post is not kept.
	Bury(ctx context.Context, replica string) error
	// Changed receives, without data, after another replica may have published a post or
	// ended. It has capacity 1 and one reader. A signal may be lost: the reader also
	// reads every Pace.Read.
	Changed() <-chan struct{}
	// Pace returns the intervals for all this.
	Pace() Pace
}

// Pace has the intervals of a Board.
type Pace struct {
	// Publish is the least time between two reports of a replica.
	Publish time.Duration
	// Beat is the time between two signs of life.
	Beat time.Duration
	// Read is the time between two reads without a signal.
	Read time.Duration
	// Unheard is the maximum age of the last sign of life of a replica. After that, what
	// its Envoys have is unknown.
	Unheard time.Duration
	// Gone is the age at which the process counts as dead. From then on, only those of
	// its Envoys count that have not connected to another replica since.
	Gone time.Duration
	// Forget is the age at which the replica is forgotten with all its Envoys.
	Forget time.Duration
}

// DefaultPace is the pace of all boards. A report waits for half a second, so that many
// answers of Envoys are one write. Two signs of life in a row may be lost before a
// replica is not heard. The Envoys of a dead replica connect elsewhere within seconds;
// those of one that is only cut off from the board do not.
func DefaultPace() Pace {
	return Pace{
		Publish: 500 * time.Millisecond, Beat: 5 * time.Second, Read: 5 * time.Second,
		Unheard: 15 * time.Second, Gone: time.Minute, Forget: 10 * time.Minute,
	}
}

// Versions number what a replica has posted. They only increase.
type Versions struct{ Report, Mail int64 }

// Post is what a replica leaves on a Board.
type Post struct {
	Replica string
	Versions
	// Report is a Report as Encode writes it; nil means that the last one is still valid.
	Report []byte
	// Mail is for replicas that wait for each other's Envoys; nil likewise. A board on
	// which no replica waits may omit it.
	Mail []byte
}

// Notice is the post of another replica, as it is read.
type Notice struct {
	Post
	// Age is the time since the replica's last sign of life, by the clock of the board or
	// of the reader; never by the replica's own.
	Age time.Duration
	// Ended says that the replica has stopped properly. Only its name is set then.
	Ended bool
}
