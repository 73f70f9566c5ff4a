package standalone

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
)

// logFormat makes Envoy log one JSON object per line; %j escapes the message.
const logFormat = `{"level":"%l","logger":"%n","line":"%j"}`

// keptLines is how many of the last warnings a failed start shows.
const keptLines = 3

// maxLine bounds a line without an end.
const maxLine = 64 << 10

// logLevel makes Envoy log its many informational lines only if this program logs debug
// lines.
func logLevel(ctx context.Context, log *slog.Logger) string {
	if log.Enabled(ctx, slog.LevelDebug) {
		return "info"
	}
	return "warning"
}

// logWriter converts the lines that Envoy logs into records. It belongs to the
// goroutine that copies from the process.
type logWriter struct {
	ctx  context.Context //nolint:containedctx // slog wants one, io.Writer has none
	log  *slog.Logger
	told func([]byte) // nil discards them
	rest []byte
	last []string
	// ending says that Envoy was told to stop: it then logs warnings about that, and
	// about the connections that it closes.
	ending atomic.Bool
}

func (w *logWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			break
		}
		w.record(line)
		w.rest = rest
	}
	if len(w.rest) > maxLine {
		w.flush()
	}
	return len(p), nil
}

func (w *logWriter) flush() {
	w.record(w.rest)
	w.rest = nil
}

func (w *logWriter) record(raw []byte) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return
	}
	var entry struct{ Level, Logger, Line, Gatehouse string }
	if err := json.Unmarshal(raw, &entry); err != nil {
		// Lines from before Envoy's logger runs, and the last words of a crash.
		entry.Level, entry.Logger, entry.Line = "error", "stderr", string(raw)
	}
	if entry.Gatehouse != "" {
		if w.told != nil {
			w.told(raw)
		}
		return
	}
	level := slogLevel(entry.Level)
	if level == slog.LevelWarn && w.ending.Load() {
		level = slog.LevelDebug
	}
	if level >= slog.LevelWarn {
		w.last = append(w.last, entry.Line)
		w.last = w.last[max(0, len(w.last)-keptLines):]
	}
	w.log.Log(w.ctx, level, "envoy", "line", entry.Line, "logger", entry.Logger)
}

func slogLevel(envoy string) slog.Level {
	switch envoy {
	case "trace", "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warning":
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}
