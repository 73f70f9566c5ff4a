package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

const (
	demoLogFile = "demo.log"
	// largestDemoLog is the size at which the file starts over.
	largestDemoLog = 10 << 20
)

// programEnv returns the outputs of the program. The demo talks to a person: on a
// terminal the log goes to a file, warnings aside, and so does the access log,
// unless a setting says how they are to be.
func programEnv(cfg config.Config, level slog.Leveler, stdout, stderr io.Writer) (env app.Env, err error) {
	env = app.Env{
		Stdout: stdout, Stderr: stderr, AccessLog: stdout, Log: slog.New(logHandler(stderr, cfg, level)),
		Init: os.Getpid() == 1, Version: buildInfo().version, Program: os.Args[0],
	}
	log := onTerminal(stderr) && !cfg.Explicit["log-level"] && !cfg.Explicit["log-format"]
	access := onTerminal(stdout) && !cfg.Explicit["access-log"]
	if !cfg.Demo || cfg.DataDir == "" || !log && !access {
		return env, nil
	}
	file, err := openDemoLog(cfg.DataDir)
	if err != nil {
		return env, &runError{fmt.Errorf("opening the log of the demo: %w", err)}
	}
	env.LogFile = file.Name()
	if log {
		text := cfg
		text.LogFormat = "text"
		env.Log = slog.New(slog.NewMultiHandler(logHandler(file, text, level), logHandler(stderr, cfg, slog.LevelWarn)))
	}
	if access {
		env.AccessLog = file
	}
	return env, nil
}

// openDemoLog opens the file for as long as the process lives.
func openDemoLog(dir string) (*os.File, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path, mode := filepath.Join(dir, demoLogFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY
	if info, err := os.Stat(path); err == nil && info.Size() > largestDemoLog {
		mode |= os.O_TRUNC
	}
	return os.OpenFile(path, mode, 0o600)
}
