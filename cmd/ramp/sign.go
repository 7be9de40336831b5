package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

const signUsage = `usage: ramp sign [flags] < body

Reads a request body from standard input and prints its X-HMAC-SIGNATURE. Every byte
counts, a final newline included. The key comes from the environment variable
RAMP_HMAC_KEY, so that it never appears on a command line.
`

// sign prints the HMAC of standard input.
func sign(_ context.Context, c *call) (int, error) {
	encoding := c.encodingFlag()
	if _, err := c.parse(0, 0); err != nil {
		return 0, err
	}
	text := os.Getenv("RAMP_HMAC_KEY")
	if text == "" {
		return 0, misuse{errors.New("RAMP_HMAC_KEY is not set")}
	}
	key, err := readKey(text, *encoding)
	if err != nil {
		return 0, misuse{err}
	}
	body, err := io.ReadAll(c.in)
	if err != nil {
		return 0, misuse{err}
	}
	fmt.Fprintln(c.out, key.Sign(body))
	return 0, nil
}

const versionUsage = "usage: ramp version\n\nPrints the version of this program and of Go.\n"

// version prints the version of this build.
func version(_ context.Context, c *call) (int, error) {
	if _, err := c.parse(0, 0); err != nil {
		return 0, err
	}
	built, ok := debug.ReadBuildInfo()
	if !ok {
		built = &debug.BuildInfo{}
	}
	fmt.Fprintln(c.out, "ramp", cmp.Or(built.Main.Version, "(devel)"), built.GoVersion)
	return 0, nil
}
