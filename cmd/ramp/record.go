package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/internal/record"
)

const recordUsage = `usage: ramp record -game URL -service URL [flags]

Stands between a game's server, written in any language, and the real service on a
testnet. It passes each call on unchanged, writes what passed into files without
secrets, and lists what deviates from the interface, which fields are new, and which
open points of docs/interface.md the calls have answered. docs/recording.md explains it.

Example: ramp record -game http://127.0.0.1:8080 -service https://api.ramp.example

Exit status: 0 after Ctrl+C, 1 if a file could not be written, 2 if it did not begin.
`

// recordCalls is the command record.
func recordCalls(ctx context.Context, c *call) (int, error) {
	var config record.Config
	c.StringVar(&config.Game, "game", "", "base `URL` of the game's server (required)")
	c.StringVar(&config.Service, "service", "",
		"`URL` of the service's API, as the game uses it; without it, initialize calls do not pass here")
	c.endpointFlags(&config.AssetsPath, &config.ValidatePath, &config.ResultPath)
	listen := c.String("listen", "127.0.0.1:8091", "`address` for the calls of the service")
	api := c.String("service-listen", "127.0.0.1:8092", "`address` for the initialize calls of the game")
	var keys keyFlags
	c.keyFileFlag(&keys, "; no file of the recording has it")
	c.StringVar(&config.Folder, "folder", filepath.Join("ramp-recorded",
		time.Now().Format("2006-01-02-150405")),
		"new `folder` for the files")
	if _, err := c.parse(0, 0); err != nil {
		return 0, err
	}
	if err := need([2]string{"-game", ifEmpty(config.Game, "the base URL of your server")}); err != nil {
		return 0, err
	}
	key, err := keys.text()
	if err != nil {
		return 0, err
	}
	if key != "" {
		config.Readings = readings(key)
		config.Secrets = []string{key}
	}
	const gap = "%d lines were not printed, because nobody read them\n"
	out, errs := &aside{out: c.out, gap: gap}, &aside{out: c.errs, gap: gap}
	std := c.stdio
	c.stdio = stdio{std.in, out, errs} // nobody waits for a reader
	config.OnCall = func(l record.Line) { printRecorded(out, errs, l) }
	status, err := serveRecorder(ctx, c, config, *listen, *api)
	c.stdio = std
	_ = errs.close()
	if failed := out.close(); failed != nil {
		fmt.Fprintln(c.errs, "ramp record: the output could not be written:", failed)
		status = 1
	}
	return status, err
}

// serveRecorder records until ctx is done.
func serveRecorder(ctx context.Context, c *call, config record.Config, listen, api string) (status int,
	err error) {
	front, err := net.Listen("tcp", listen)
	if err != nil {
		return 0, misuse{fmt.Errorf("-listen: %w", err)}
	}
	defer front.Close()
	frontAt, err := loopback.Address(front)
	if err != nil {
		return 0, misuse{fmt.Errorf("-listen: %w", err)}
	}
	listeners, backAt := []net.Listener{front}, ""
	if config.Service != "" {
		back, err := net.Listen("tcp", api)
		if err != nil {
			return 0, misuse{fmt.Errorf("-service-listen: %w", err)}
		}
		defer back.Close()
		if backAt, err = loopback.Address(back); err != nil {
			return 0, misuse{fmt.Errorf("-service-listen: %w", err)}
		}
		listeners = append(listeners, back)
	}
	recorder, err := record.New(config)
	if err != nil {
		return 0, misuse{err}
	}
	var servers []*http.Server
	for n, handler := range []http.Handler{recorder.Game(), recorder.Service()}[:len(listeners)] {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard,
			"", 0)}
		servers = append(servers, server)
		go func() { _ = server.Serve(listeners[n]) }() // until it is shut down
	}
	fmt.Fprintf(c.out, "Writes into %s (Ctrl+C stops)\n", config.Folder)
	fmt.Fprintf(c.out, "For the service console, behind your own HTTPS: http://%s instead of %s\n",
		frontAt, config.Game)
	if len(listeners) == 2 {
		service, _ := url.Parse(config.Service) // New has parsed it
		fmt.Fprintf(c.out, "For the game's environment:\nexport RAMP_API_URL=http://%s%s\n",
			backAt, strings.TrimRight(service.Path, "/"))
	}
	if len(config.Readings) == 0 {
		fmt.Fprintln(c.out, "Without -key-file or $RAMP_HMAC_KEY, nothing shows how the HMAC key is read")
	}
	fmt.Fprintln(c.out)
	<-ctx.Done()
	// Calls that are passing end as they would without the recorder.
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(patience) != nil {
			_ = server.Close() // what is still open is cut off
		}
	}
	report, err := recorder.Close()
	fmt.Fprintf(c.out, "\n%s", report)
	if err != nil {
		fmt.Fprintln(c.errs, "ramp record:", err)
		return 1, nil
	}
	return 0, nil
}

// readings returns the ways in which a key can be made of the console's text.
func readings(text string) (list []record.Reading) {
	add := func(name string, key ramp.HMACKey, err error) {
		if err == nil {
			list = append(list, record.Reading{Name: name, Key: key})
		}
	}
	key, err := ramp.TextKey(text)
	add("ramp.TextKey", key, err)
	key, err = ramp.Base64URLKey(text)
	add("ramp.Base64URLKey", key, err)
	for _, form := range []struct {
		name   string
		decode func(string) ([]byte, error)
	}{
		{"hex", hex.DecodeString},
		{"base64.StdEncoding", base64.StdEncoding.DecodeString},
		{"base64.RawStdEncoding", base64.RawStdEncoding.DecodeString},
		{"base64.URLEncoding", base64.URLEncoding.DecodeString},
	} {
		if raw, err := form.decode(text); err == nil {
			key, err = ramp.BytesKey(raw)
			add("ramp.BytesKey of its "+form.name, key, err)
		}
	}
	return list
}

// printRecorded prints one call, and what is new with it.
func printRecorded(out, errs io.Writer, l record.Line) {
	answer := fmt.Sprintf("HTTP %d", l.Status)
	if l.Status == 0 {
		answer = "no answer"
	}
	fmt.Fprintf(out, "%04d  %-10s  %s  %s\n", l.Call, l.Kind, answer, l.Took.Round(time.Millisecond))
	for _, text := range l.News {
		fmt.Fprintln(out, "      "+colored(out, yellow, cmp.Or(oneLine(text), "?")))
	}
	if l.Failed != nil {
		fmt.Fprintln(errs, "ramp record:", l.Failed)
	}
}
