package main

import (
	"bufio"
	"bytes"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// shell runs a command that a page offers, with the credentials in the environment as
// the page demands, and returns the answer that curl prints.
func (d *desktop) shell(t *testing.T, command, token string) (status int, body string) {
	t.Helper()
	here := must.Get(os.Executable())(t)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(here, filepath.Join(bin, "ramp"))) // see TestMain
	sh := exec.CommandContext(t.Context(), "sh", "-c", command)
	sh.Dir = bin
	sh.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "RAMP_ACCESS_TOKEN=" + token, "RAMP_HMAC_KEY=" + testKey,
		"GORACE=atexit_sleep_ms=0"} // the race detector would wait a second at each end
	var errs bytes.Buffer
	sh.Stderr = &errs
	out, err := sh.Output()
	require.NoError(t, err, "%s\n%s", command, errs.String())
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(out)), nil)
	require.NoError(t, err, "%s", out)
	defer answer.Body.Close()
	read := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(read)
}

// page returns the HTML of a page.
func (d *desktop) page(t *testing.T, path string) string {
	t.Helper()
	answer := must.Get(http.Get(d.API + path))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	return string(body)
}

// part returns the text of the first element of a page whose tag matches.
func part(t *testing.T, page, tag string) string {
	t.Helper()
	found := regexp.MustCompile(`<[^<>]*` + tag + `[^<>]*>([^<]*)<`).FindStringSubmatch(page)
	require.NotNil(t, found, "there is no %s in %s", tag, page)
	return html.UnescapeString(found[1])
}

// The commands that the pages offer repeat the calls, and get the answers that the pages
// show.
func TestTheCurlCommandsOfThePagesWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED, NOTHING WAS TESTED: there is no curl on this machine (apt-get install curl)")
	}
	d := newDesktop(t, "-speed", "0")
	d.shop.session, d.shop.asset = `it's $(id) \ "session" & 1`, `it's "gold" \ $HOME`
	key := must.Get(ramp.TextKey(testKey))(t)
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: d.API, Key: key}))(t)
	terms := request()
	terms.Intent.Materials[0].ID = d.shop.asset
	issued := must.Get(client.Initialize(t.Context(), terms))(t)
	id := issued.UUID.String()
	status, _, errs := d.ramp(t, "trigger", "mint", "-uuid", id, "-session", d.shop.session+"="+testToken,
		"-fault", "wrong-hmac=validate", "-fault", "missing-hmac=validate", "-fault", "tampered-body=result")
	require.Zero(t, status, errs)

	repeat := func(kind string, want ...int) {
		var got []int
		entry := regexp.MustCompile(`data-kind="` + kind + `"[^<>]*>\s*<details[^<>]*data-body="([^"]*)"`)
		for _, link := range entry.FindAllStringSubmatch(d.page(t, "/orders/"+id), -1) {
			page := d.page(t, link[1])
			command := part(t, page, `id="curl-`)
			assert.NotContains(t, command, testToken)
			assert.NotContains(t, command, testKey)
			status, body := d.shell(t, command, testToken)
			assert.Contains(t, page, "<h3>answered: HTTP "+strconv.Itoa(status)+"</h3>", command)
			shown := part(t, page, `aria-label="Answer"`)
			shown = shown[strings.Index(shown, "{"):] // after the headers
			if kind == "initialize" {                 // issues a new UUID each time
				uuids := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
				assert.NotEqual(t, uuids.FindString(shown), uuids.FindString(body))
				shown, body = uuids.ReplaceAllString(shown, "UUID"), uuids.ReplaceAllString(body, "UUID")
			}
			assert.JSONEq(t, shown, body, command)
			got = append(got, status)
		}
		assert.Equal(t, want, got, kind)
	}
	repeat("initialize", 200)
	repeat("validate", 401, 401, 200) // also what is forged on purpose
	d.ends(t, 0, "advance", "1m")
	repeat("result", 500, 200)
	assert.Equal(t, int64(900), d.shop.gold, "a repeat moves nothing")

	// A rejection offers its call too.
	page := d.page(t,
		"/catalog?"+url.Values{"projectId": {"project-1"}, "network": {"testnet"}, "sessionId": {d.shop.session},
			"accessToken": {"stale"}}.Encode())
	code, body := d.shell(t, part(t, page, `id="curl-`), "stale")
	assert.Equal(t, 401, code)
	assert.Contains(t, html.UnescapeString(page), "GET /api/assets: HTTP 401, INVALID_USER\n"+body)
	code, body = d.shell(t, part(t, page, `id="curl-`), testToken)
	assert.Equal(t, 200, code)
	assert.Contains(t, body, "alice")
}
