package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
)

const signUsage = `usage: ramp sign [flags] < body

Reads a request body from standard input and prints its X-HMAC-SIGNATURE. Every byte
counts, a final newline included.

Example: ramp sign < body.json
`

// sign prints the HMAC of standard input.
func sign(_ context.Context, c *call) (int, error) {
	var key keyFlags
	c.keyFileFlag(&key, "")
	c.encodingFlag(&key)
	if _, err := c.parse(0, 0); err != nil {
		return 0, err
	}
	text, err := key.text()
	if err == nil {
		err = need([2]string{"-key-file", ifEmpty(text, needKey)})
	}
	if err != nil {
		return 0, err
	}
	hmac, err := readKey(text, key.encoding)
	if err != nil {
		return 0, misuse{err}
	}
	body, err := io.ReadAll(c.in)
	if err != nil {
		return 0, misuse{err}
	}
	for _, note := range []struct {
		is   bool
		what string
	}{
		{bytes.HasPrefix(body, []byte("\ufeff")), "begins with a byte order mark"},
		{bytes.HasPrefix(body, []byte("\xff\xfe")), "is in UTF-16"},
		{bytes.HasSuffix(body, []byte("\n")), "ends with a line break"},
	} {
		if note.is {
			fmt.Fprintf(c.errs, "ramp sign: the body %s, which counts\n", note.what)
		}
	}
	fmt.Fprintln(c.out, hmac.Sign(body))
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
