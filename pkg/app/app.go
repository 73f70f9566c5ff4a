package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/standalone"
)

// Env is what the program gets from its surroundings.
type Env struct {
	Stdout, Stderr io.Writer
	// AccessLog receives the access log of an Envoy of this program's; nil means
	// Stdout.
	AccessLog io.Writer
	Log       *slog.Logger
	// LogFile is where the log goes, for the demo to say; empty if it goes
	// to the screen.
	LogFile string
	// Loaded is called once the first configuration is published; nil means that
	// nobody wants to know.
	Loaded func()
	// Init says that the program is process 1 of a container, which gets the orphans.
	Init bool
	// Program is how the program was called.
	Program, Version string
}

// reapOrphans waits for orphans until stop is called, if there can be any. The children
// are those that the program waits for itself.
func (e Env) reapOrphans(children *standalone.Children) (stop func()) {
	if !e.Init {
		return func() {}
	}
	return children.StartReaping(e.Log)
}

// Serve runs the control plane until ctx ends.
func Serve(ctx context.Context, cfg config.Config, env Env) (err error) {
	defer env.reapOrphans(&standalone.Children{})()
	if cfg.Mode != config.ModeKubernetes { // else the database is this process's own
		release, err := claim(ctx, cfg, "gatehouse serve")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	plane, err := openControlPlane(ctx, cfg, env, nil, nil, nil)
	if err != nil {
		return err
	}
	return plane.run(ctx)
}
