// SPDX-License-Identifier: MIT

// lissom-agent runs on each node and puts containers that ask for it under lissom. It is a plugin
// of the container runtime's Node Resource Interface (NRI): docs/operate/kubernetes.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

const usage = `usage: lissom-agent [options]           be the node's agent
       lissom-agent [options] install   put the runtime into the host's folder, and end

options:
`

type arguments struct {
	socket, index, folder, lissom, namespaces, manager, listen string
	debug                                                      bool
}

func main() {
	var a arguments
	flag.StringVar(&a.socket, "socket", api.DefaultSocketPath, "the container runtime's socket for NRI plugins")
	flag.StringVar(&a.index, "index", "95", "place among the NRI plugins, 00 to 99: after those that set LD_PRELOAD too")
	flag.StringVar(&a.folder, "folder", "/opt/lissom", "the runtime's folder, on the host and, under the same name, here")
	flag.StringVar(&a.lissom, "lissom", "/usr/bin/lissom", "the binary that contains the runtime and knows the variables for it")
	flag.StringVar(&a.namespaces, "namespaces", "", "namespaces, separated by commas, all of whose pods are opted in")
	flag.StringVar(&a.manager, "manager", "", "socket of the host's `lissom manager`, to be shown to containers (default none)")
	flag.StringVar(&a.listen, "listen", ":8787", "address for probes and metrics")
	flag.BoolVar(&a.debug, "debug", false, "log what the NRI library does, too")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	level := slog.LevelInfo
	if a.debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	var err error
	switch {
	case flag.NArg() == 0:
		err = a.serve(log)
	case flag.NArg() == 1 && flag.Arg(0) == "install":
		var name string
		if name, err = install(a.lissom, a.folder); err == nil {
			log.Info("installed", "folder", a.folder, "library", name)
		}
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		log.Error("ends", "reason", err.Error())
		os.Exit(1)
	}
}

func (a *arguments) serve(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	status := newStatus()
	listener, err := net.Listen("tcp", a.listen)
	if err != nil {
		return err
	}
	// As for a container without variables and options.
	ready := func() error {
		_, name, err := underLissom(ctx, a.lissom, nil, nil)
		if err == nil {
			err = checkLibrary(a.folder, name)
		}
		return err
	}
	server := &http.Server{Handler: status.handler(ready), ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(listener)
	defer server.Close()
	log.Info("listens", "address", listener.Addr().String())

	if err := ready(); err != nil {
		log.Warn("containers run natively", "reason", err.Error())
	}
	plugin := &plugin{log: log, status: status, folder: filepath.Clean(a.folder), lissom: a.lissom, manager: a.manager}
	plugin.namespaces = words(a.namespaces)
	return stayConnected(ctx, log, plugin, a)
}

// patience limits the time until the plugin is configured. The container runtime waits 5 s for a
// plugin's registration, so nothing comes after that.
const patience = 15 * time.Second

// stayConnected runs the plugin until ctx ends; it reconnects whenever the container runtime has
// gone.
func stayConnected(ctx context.Context, log *slog.Logger, plugin *plugin, a *arguments) error {
	const least, most = time.Second, 30 * time.Second
	pause := least
	for {
		began := time.Now()
		err := connection(ctx, log, plugin, a)
		plugin.status.connect(false)
		if ctx.Err() != nil {
			log.Info("ends", "reason", "a signal")
			return nil
		}
		if errors.Is(err, errStuck) {
			return err
		}
		if time.Since(began) > most {
			pause = least
		}
		reason := "the connection was closed"
		if err != nil {
			reason = err.Error()
		}
		log.Warn("not connected", "socket", a.socket, "reason", reason, "again_in", pause.String())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, most)
	}
}

var errStuck = errors.New("the container runtime took the connection, but never spoke")

// connection runs the plugin from connecting to the socket until the connection ends.
func connection(ctx context.Context, log *slog.Logger, plugin *plugin, a *arguments) error {
	closed := make(chan struct{}, 1)
	s, err := stub.New(plugin,
		stub.WithPluginName("lissom"),
		stub.WithPluginIdx(a.index),
		stub.WithSocketPath(a.socket),
		stub.WithLogger(nriLog{log}),
		// Without this hook, the library would end the process.
		stub.WithOnClose(func() {
			select {
			case closed <- struct{}{}:
			default:
			}
		}))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	late := time.After(patience)
	for {
		select {
		case err := <-ended:
			return err
		case <-closed:
			return nil
		case <-ctx.Done():
			return nil
		case <-late:
			// The library waits forever if the container runtime dies between
			// registration and configuration. The kubelet restarts the agent.
			if !plugin.status.isConnected() {
				return errStuck
			}
		}
	}
}

// nriLog receives the NRI library's log.
type nriLog struct{ log *slog.Logger }

func (l nriLog) Debugf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "nri", "text", fmt.Sprintf(format, args...))
}
func (l nriLog) Infof(ctx context.Context, format string, args ...any) {
	l.Debugf(ctx, format, args...)
}
func (l nriLog) Warnf(ctx context.Context, format string, args ...any) {
	l.log.WarnContext(ctx, "nri", "text", fmt.Sprintf(format, args...))
}
func (l nriLog) Errorf(ctx context.Context, format string, args ...any) {
	l.log.ErrorContext(ctx, "nri", "text", fmt.Sprintf(format, args...))
}
