package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// handleSignals handles two signals that would kill a server. SIGUSR1 has it
// read its settings again, of which the log level can change while it runs.
// SIGPIPE comes when nobody reads the log any more: the gateway goes on.
func handleSignals(cmd *cobra.Command, level *slog.LevelVar, log *slog.Logger) {
	// What is heard is not ignored: Envoy would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGUSR1)
	go func() {
		for {
			select {
			case <-again:
				cfg, _, err := load(cmd)
				reload(cfg, err, level, log)
			case <-cmd.Context().Done():
				return
			}
		}
	}()
}

func reload(cfg config.Config, err error, level *slog.LevelVar, log *slog.Logger) {
	if err != nil {
		log.Warn("settings not read again, the old ones stay", "err", err)
		return
	}
	level.Set(levelOf(cfg))
	log.Info("settings read again", "log_level", cfg.LogLevel)
}
