package ramptest_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// commandFolder is where buildCommand builds the command once, which the places below include.
var commandFolder = ramp.Must(os.MkdirTemp("", "ramp"))

var buildCommand = sync.OnceValue(func() string {
	binary := filepath.Join(commandFolder, "ramp")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/ramp").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return binary
})

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(commandFolder)
	os.Exit(code)
}

// places returns how many orders need attention, which every place where somebody looks
// must agree on: the API's list, the page's list and its count, and the command. That of the
// test itself is left to the caller.
func places(t *testing.T, s *ramptest.Service, command string) (n int) {
	t.Helper()
	client := s.Client()
	plain := func(page string) string {
		return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " "))), " ")
	}
	get := func(path string) string {
		answer, err := client.Get(s.URL() + path)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s", body)
		return string(body)
	}
	var list control.OrderList
	require.NoError(t, json.Unmarshal([]byte(get("/control/orders?attention=true")), &list))
	n = list.Total
	assert.Len(t, list.Orders, n)
	page := get("/?show=attention")
	assert.Equal(t, n, strings.Count(page, `id="order-`), "the list of the page")
	if n > 0 || !strings.Contains(plain(page), "Connect your game") { // an empty list has no counts
		assert.Contains(t, plain(page), fmt.Sprintf("Needs attention %d ", n), "the count of the page")
	}
	for _, o := range list.Orders {
		own := plain(get("/orders/" + o.UUID.String()))
		assert.Contains(t, own, o.Said, "its own page")
		assert.Equal(t, o.TxHash != common.Hash{}, regexp.MustCompile("Mine the transaction|Send the result").MatchString(own), "its buttons")
	}

	host, err := url.Parse(s.URL())
	require.NoError(t, err)
	listens := httptest.NewServer(&httputil.ReverseProxy{Transport: client.Transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }})
	defer listens.Close()
	run := exec.Command(command, "orders", "-at", listens.URL, "-attention", "-json")
	printed, _ := run.Output()
	var shown control.OrderList
	require.NoError(t, json.Unmarshal(printed, &shown), "%s", printed)
	assert.Equal(t, n, shown.Total, "the command")
	assert.Equal(t, n > 0, run.ProcessState.ExitCode() != 0, "the exit status of the command")
	return n
}
