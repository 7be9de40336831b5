package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
)

// Game servers are replaced one after the other, again and again, while calls of validate come on connections
// that were opened before all of it. The service may not send such a call again, so each must be answered by
// a game: with its 401, because the calls have no valid HMAC, and never by a proxy.
func TestADeployUnderLoadLosesNoValidate(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	for name, drain := range map[string]string{"nginx": "0", "HAProxy": "3s"} { // as docs/operations.md says
		t.Run(name, func(t *testing.T) {
			if _, err := lookUp(proxies[name].binary); err != nil {
				t.Skip("*** NOT TESTED: " + proxies[name].binary + " is not installed ***")
			}
			database := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
			first, second := freeAddress(t), freeAddress(t)
			servers := []*process{deploy(t, database, "-any-rate", "-addr", first, "-drain", drain),
				deploy(t, database, "-any-rate", "-addr", second, "-drain", drain)}
			url, client := startProxy(t, name, configOf(t, name), first, second)
			awaitServers(t, client, url)

			const callers, calls = 8, 1000
			var mu sync.Mutex
			answers, opened := map[string]int{}, 0
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range callers {
				kept := client.Transport.(*http.Transport).Clone() // a connection of its own, kept open
				kept.MaxIdleConns, kept.IdleConnTimeout = 1, 0
				kept.DialTLSContext = nil
				kept.TLSClientConfig = client.Transport.(*http.Transport).TLSClientConfig.Clone()
				kept.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error {
					mu.Lock()
					defer mu.Unlock()
					opened++
					return nil
				}
				caller := &http.Client{Transport: kept}
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						got := validated(caller, url)
						mu.Lock()
						answers[got]++
						mu.Unlock()
					}
				})
			}
			enough := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return answers["401"] >= calls || len(answers) > 1
			}
			deployments := 0
			for ; deployments < 4 || !enough(); deployments++ {
				for _, p := range servers {
					p.stop()
					p.start()
					await(t, func() bool { return strings.Contains(p.log.String(), "unverified") },
						func() string { return "the proxy sends a new server no call" })
				}
			}
			close(stop)
			wg.Wait()
			t.Logf("%d servers were replaced; answers: %v; %d connections of %d callers", 2*deployments,
				answers, opened, callers)
			if len(answers) != 1 || answers["401"] < calls {
				t.Errorf("a proxy has answered: %v", answers)
			}
		})
	}
}

// A call meets one server as it stops, and then the other one: nginx had no time between the two. The first is up
// again. HAProxy sends no call to a server that will stop, because of -drain.
func TestACallOutlivesTwoServersThatStop(t *testing.T) {
	if _, err := lookUp("nginx"); err != nil {
		t.Skip("*** NOT TESTED: nginx is not installed ***")
	}
	first, second := startBackend(t), startBackend(t)
	url, client := startProxy(t, "nginx", configOf(t, "nginx"), first.address, second.address)
	for range 4 { // also on connections that were kept open
		first.mode.Store("stops")
		second.mode.Store("stops")
		equal(t, "a call", validated(client, url), "200")
		equal(t, "the servers", fmt.Sprint(first.mode.Load(), " ", second.mode.Load()), "fine fine")
	}
	first.mode.Store("closes")
	second.mode.Store("closes")
	before := first.calls.Load() + second.calls.Load()
	equal(t, "a call, while no server is up", validated(client, url), "500")
	equal(t, "its tries", first.calls.Load()+second.calls.Load()-before, int64(4))
}

// validated makes a call of validate, and returns who answered it.
func validated(client *http.Client, url string) string {
	request, err := http.NewRequest(http.MethodPost, url+ramp.PathValidate, bytes.NewReader([]byte(`{"uuid":"…"}`)))
	if err != nil {
		return err.Error()
	}
	request.Header.Set("X-Hmac-Signature", strings.Repeat("0", 64))
	request.GetBody = nil // the client must not send it again: the service may not
	response, err := client.Do(request)
	if err != nil {
		return "no answer"
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "half an answer"
	}
	return fmt.Sprint(response.StatusCode)
}
