package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// shipped is how a proxy runs in production: which files it has, and where it may write.
var shipped = map[string]struct {
	dir, log string   // its folders
	command  []string // without a configuration that is not at its place
}{
	"nginx":   {"/etc/nginx", "/var/log/nginx", []string{"nginx", "-g", "daemon off;"}},
	"HAProxy": {"/etc/haproxy", "", []string{"haproxy", "-f", "/etc/haproxy/haproxy.cfg", "-db"}},
}

// TestAProxyRunsAsItIsShipped starts each proxy with its file as it is, on the addresses of compose.yaml, with the
// file system that it gives. It runs itself once more for each, with a network and mounts of its own.
func TestAProxyRunsAsItIsShipped(t *testing.T) {
	if name := os.Getenv("RAMP_TEST_SHIPPED"); name != "" {
		testShipped(t, name)
		return
	}
	if testing.Short() {
		t.Skip("it waits for a server that does not answer")
	}
	if exec.Command("unshare", "--mount", "--net", "ip", "link", "set", "lo", "up").Run() != nil {
		t.Skip("*** NOT TESTED: only root on Linux, with unshare and ip, has mounts and a network of its own ***")
	}
	eachProxy(t, func(t *testing.T, name string) {
		again := exec.Command("unshare", "--mount", "--net", must(os.Executable())(t), "-test.v", "-test.run",
			"^TestAProxyRunsAsItIsShipped$")
		again.Env = append(os.Environ(), "RAMP_TEST_SHIPPED="+name)
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	})
}

func testShipped(t *testing.T, name string) {
	c, _ := readCompose(t)
	config, p := configOf(t, name), shipped[name]
	certificate, client := certify(t, t.TempDir(), time.Hour)
	pem := must(os.ReadFile(certificate))(t)
	system(t, "ip", "link", "set", "lo", "up")
	system(t, "mount", "--make-rprivate", "/")
	for _, dir := range []string{p.dir, p.log} {
		if dir != "" {
			system(t, "mount", "-t", "tmpfs", "tmpfs", dir)
		}
	}
	for path, text := range map[string][]byte{"nginx.conf": []byte(config), "haproxy.cfg": []byte(config),
		"tls/tls.crt": pem, "tls/tls.key": pem, "tls.pem": pem} {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(p.dir, path)), 0o755))
		check(t, os.WriteFile(filepath.Join(p.dir, path), text, 0o644))
	}
	if p.log != "" { // as in the image
		check(t, os.Symlink("/dev/stdout", filepath.Join(p.log, "access.log")))
		check(t, os.Symlink("/dev/stderr", filepath.Join(p.log, "error.log")))
	}
	for _, dir := range c.Services["nginx"].Tmpfs {
		dir, options, _ := strings.Cut(dir, ":")
		system(t, "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir)
	}
	system(t, "mount", "-o", "remount,bind,ro", "/")

	var hung net.Listener // takes calls, and answers none
	haveAddress(t, gameServers[0])
	serveAs(t, gameServers[0])
	for _, other := range []struct {
		what string
		make func()
	}{
		{"has no address", func() {}},
		{"refuses", func() { haveAddress(t, gameServers[1]) }},
		{"does not answer", func() { hung = must(net.Listen("tcp", gameServers[1]))(t) }},
	} {
		other.make()
		// One that has hung for 13 seconds is tried again for each second call.
		calls := map[bool]int{true: 2, false: 4}[other.what == "does not answer"]
		log, stop := startShipped(t, p.command)
		for n := range calls {
			if got, by := answerOf(client, "small"); got != "200" || by != gameServers[0] {
				t.Errorf("the other server %s: call %d: %s by %s\n%s", other.what, n, got, by, log)
			}
		}
		stop()
	}
	log, _ := startShipped(t, p.command)
	if got, _ := answerOf(client, strings.Repeat("large ", 200_000)); got != "200" {
		t.Errorf("a large body: %s\n%s", got, log)
	}
	if t.Failed() {
		return
	}
	check(t, hung.Close())
	serveAs(t, gameServers[1])
	await(t, func() bool {
		_, by := answerOf(client, "small")
		return by == gameServers[1]
	}, func() string { return "a server that comes later gets no call" })
}

// haveAddress gives this machine the address of a game server.
func haveAddress(t *testing.T, address string) {
	host, _, _ := net.SplitHostPort(address)
	system(t, "ip", "addr", "add", host+"/32", "dev", "lo")
}

// serveAs answers calls as a game server, with its address.
func serveAs(t *testing.T, address string) {
	l := must(net.Listen("tcp", address))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, address)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

func startShipped(t *testing.T, command []string) (log *logBuffer, stop func()) {
	proxy := exec.Command(must(lookUp(command[0]))(t), command[1:]...)
	proxy.Dir = "/" // the folder of the test may be below what is mounted
	return launch(t, proxy, "127.0.0.1:8443")
}

// answerOf sends a result, and returns the status and which server has answered.
func answerOf(client *http.Client, body string) (status, by string) {
	request, err := http.NewRequest(http.MethodPost, "https://127.0.0.1:8443"+ramp.PathResult, strings.NewReader(body))
	if err != nil {
		return err.Error(), ""
	}
	request.Close = true
	response, err := client.Do(request)
	if err != nil {
		return err.Error(), ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error(), ""
	}
	return fmt.Sprint(response.StatusCode), string(text)
}

func system(t *testing.T, program string, args ...string) {
	t.Helper()
	if said, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said)
	}
}

// TestComposeStartsNginx looks at what compose.yaml says of nginx, and of the servers that both proxies look for.
func TestComposeStartsNginx(t *testing.T) {
	c, _ := readCompose(t)
	for _, name := range []string{"game-1", "game-2"} {
		address := c.Services[name].Networks.(map[string]any)["outside"].(map[string]any)["ipv4_address"].(string)
		for _, proxy := range []string{"nginx", "HAProxy"} {
			if !strings.Contains(configOf(t, proxy), " "+address+":8080") {
				t.Errorf("%s does not find %s", proxy, name)
			}
		}
	}
	if !c.Services["nginx"].ReadOnly {
		t.Error("nginx can write")
	}
	for _, volume := range c.Services["nginx"].Volumes {
		file, _, _ := strings.Cut(volume, ":")
		if _, err := os.Stat(filepath.Join("deploy", file)); err != nil && file != "./tls" {
			t.Error(err)
		}
	}
}
