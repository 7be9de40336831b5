package main

import (
	"context"
	"debug/elf"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"go.yaml.in/yaml/v3"
)

// compose is the tested part of compose.yaml.
type compose struct {
	Services map[string]struct {
		Image           string
		Build           struct{ Context, Dockerfile string }
		Command         []string
		Environment     map[string]string
		ReadOnly        bool `yaml:"read_only"`
		Tmpfs           []string
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
		StopGracePeriod string   `yaml:"stop_grace_period"`
		MemLimit        string   `yaml:"mem_limit"`
		Networks        any
		Ports, Volumes  []string
	}
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]any
}

func readCompose(t *testing.T) (c compose, text string) {
	t.Helper()
	b := must(os.ReadFile("deploy/compose.yaml"))(t)
	check(t, yaml.Unmarshal(b, &c))
	return c, string(b)
}

// CI has no container engine, so the test imitates the image: it builds the binary
// with the command of the Dockerfile, and runs it in an otherwise empty root that it
// cannot write to, as another user, with the arguments of the compose file.
func TestTheImageServes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	dockerfile := must(os.ReadFile("deploy/Dockerfile"))(t)
	root := t.TempDir()
	build := regexp.MustCompile(`(?m)^RUN (.*)$`).FindStringSubmatch(string(dockerfile))
	if build == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	command := exec.Command("sh", "-c", strings.ReplaceAll(build[1], "/out/", root+"/"))
	game := regexp.MustCompile(`(?m)^ARG GAME=(.*)$`).FindStringSubmatch(string(dockerfile))
	command.Dir = "../.." // the context of the compose file
	if _, err := os.Stat(filepath.Join(command.Dir, game[1])); err != nil {
		command.Dir, game[1] = ".", "." // in a copy
	}
	command.Env = append(os.Environ(), "GOFLAGS=", "GAME="+game[1]) // without the test's own flags, such as -race
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary := must(elf.Open(filepath.Join(root, "gameserver")))(t)
	defer binary.Close()
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker, which the image does not have")
		}
	}

	c, _ := readCompose(t)
	eachDatabaseAlone(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "mysql") {
			t.Skip("the compose file has PostgreSQL")
		}
		at := strings.NewReplacer("postgres://game@db:5432/game?sslmode=disable", address)
		for _, arg := range c.Services["migrate"].Command[1:] {
			out, err := exec.Command(filepath.Join(root, "gameserver"), c.Services["migrate"].Command[0],
				at.Replace(arg)).CombinedOutput()
			if err != nil {
				t.Fatalf("migrate: %v\n%s", err, out)
			}
		}
		read := map[string]string{"RAMP_PROJECT": "project", "RAMP_TOKEN": token, "RAMP_NETWORK": "testnet",
			"RAMP_CHAIN_ID": "1112",
			"RAMP_PAYERS":   "0x00000000000000000000000000000000000a11ce", "RAMP_DECIMALS": "18",
			"RAMP_CAP":      "item_gold=1/1/1/1",
			"RAMP_HMAC_KEY": hmacKey, "RAMP_VALIDATOR_KEY": validatorKey, "RAMP_API_URL": "https://api.example.com",
			"RAMP_FRONTEND_URL": "https://ramp.example.com", "RAMP_RPC_URL": "http://127.0.0.1:1"}
		var args, env []string
		for _, arg := range c.Services["game-1"].Command {
			switch {
			case strings.HasPrefix(arg, "-addr="):
				arg = "-addr=127.0.0.1:0"
			case strings.HasPrefix(arg, "-metrics="):
				arg = "-metrics=127.0.0.1:0"
			}
			args = append(args, interpolate(read, at.Replace(arg)))
		}
		for name, value := range c.Services["game-1"].Environment {
			if name != "PGPASSWORD" {
				env = append(env, name+"="+interpolate(read, value))
			}
		}
		command := exec.CommandContext(t.Context(), "/gameserver", args...)
		command.Env = env
		if sqlite := strings.HasPrefix(address, "sqlite"); sqlite || os.Getuid() != 0 {
			// Do not use chroot: SQLite needs a writable directory, and only root
			// may call it.
			command.Path = filepath.Join(root, "gameserver")
		} else {
			check(t, os.Chmod(root, 0o555))
			check(t, os.Chmod(filepath.Dir(root), 0o755))
			command.Dir = "/"
			command.SysProcAttr = &syscall.SysProcAttr{Chroot: root,
				Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		}
		var log strings.Builder
		command.Stderr = &log
		out := must(command.StdoutPipe())(t)
		check(t, command.Start())
		var listen string
		if _, err := fmt.Fscanf(out, "ready on %s", &listen); err != nil {
			_ = command.Wait()
			t.Fatalf("it does not start: %v\n%s", err, &log)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			equal(t, path, statusOf(t, http.DefaultClient, listen+path), 200)
		}
		check(t, command.Process.Signal(syscall.SIGTERM))
		rest, _ := io.ReadAll(out)
		if lines := strings.Split(string(rest), "\n"); len(lines) != 2 { // the rest of the first one
			t.Errorf("it printed %q", rest)
		}
		check(t, command.Wait())
	})
}

// interpolate is ${NAME}, ${NAME:?} and ${NAME:-default} of a compose file.
func interpolate(env map[string]string, text string) string {
	return regexp.MustCompile(`\$\{(\w+)(?::(\?|-\w*))?\}`).ReplaceAllStringFunc(text, func(match string) string {
		name, fallback, _ := strings.Cut(strings.Trim(match, "${}"), ":-")
		name = strings.TrimSuffix(name, ":?")
		if value := env[name]; value != "" {
			return value
		}
		return fallback
	})
}

func TestTheDockerfileIsSound(t *testing.T) {
	_, last, _ := strings.Cut(string(must(os.ReadFile("deploy/Dockerfile"))(t)), "\nFROM scratch\n")
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/gameserver"]`,
		"COPY --from=build /out/gameserver /gameserver"} {
		says(t, last, want+"\n")
	}
}

func TestTheComposeFileIsSound(t *testing.T) {
	c, text := readCompose(t)
	environment := must(os.ReadFile("deploy/env.example"))(t)
	for _, use := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(environment), "\n"+use[1]+"=") {
			t.Errorf("env.example does not have %s", use[1])
		}
	}
	program := ""
	for _, file := range []string{"program.go", "commands.go", "keys.go"} {
		program += string(must(os.ReadFile(file))(t))
	}
	for _, name := range []string{"game-1", "game-2"} {
		s := c.Services[name]
		grace := must(time.ParseDuration(s.StopGracePeriod))(t)
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.SecurityOpt) != 1 || len(s.Ports) > 0 ||
			grace <= endTimeout {
			t.Errorf("%s: %+v", name, s)
		}
		equal(t, name+": what the image is built from",
			filepath.ToSlash(filepath.Join("deploy", s.Build.Context, s.Build.Dockerfile)),
			"../../examples/gameserver/deploy/Dockerfile")
		if !slices.Contains(s.Command, "-books=/books/position") ||
			!slices.Contains(s.Volumes, "books-"+name[5:]+":/books") {
			t.Errorf("%s: nobody compares the books with the chain", name)
		}
		if strings.Contains(strings.Join(s.Command, " "), "KEY") ||
			strings.Contains(strings.Join(s.Command, " "), "PASSWORD") {
			t.Errorf("%s: a secret in the arguments, which every process can read", name)
		}
		for variable := range s.Environment {
			if !strings.Contains(program, `getenv("`+variable+`")`) && variable != "PGPASSWORD" &&
				variable != "GOMEMLIMIT" { // which pgx and Go read
				t.Errorf("%s: the server does not read %s", name, variable)
			}
		}
	}
	for variable := range c.Services["desk"].Environment {
		if strings.Contains(variable, "KEY") {
			t.Errorf("an operator gets %s", variable)
		}
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "RAMP_"), "_", "-"))
		if byEnvironment(flag) != variable && variable != "RAMP_RPC_URL" && variable != "PGPASSWORD" {
			t.Errorf("no command reads %s", variable)
		}
	}
	if len(c.Services["desk"].Environment) < 5 {
		t.Error("an operator needs the flags of the environment")
	}
	if !c.Networks["inside"].Internal {
		t.Error("the database can be reached")
	}
}

func TestWhatIsUnsafeIsSaidAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		settings settings
		emulated bool
		want     string
	}{
		"emulated":        {settings{}, true, "the service is emulated"},
		"any rate":        {settings{anyRate: true}, true, "-any-rate"},
		"any page":        {settings{anyPage: true}, true, "-any-page"},
		"any failure":     {settings{anyFailure: true}, true, "-any-failure"},
		"no empty blocks": {settings{noEmptyBlocks: true}, true, "-no-empty-blocks"},
		"no chain":        {settings{project: "p", caps: caps{itemGold: {}}}, false, "not confirmed on the chain"},
		"login":           {settings{chainID: 1, project: "p", caps: caps{itemGold: {}}}, false, "without a password"},
		"no cap":          {settings{chainID: 1, project: "p"}, false, "set -cap"},
	} {
		var log strings.Builder
		warn(slog.New(slog.NewTextHandler(&log, nil)), &c.settings, c.emulated, false)
		if !strings.Contains(log.String(), c.want) || strings.Count(log.String(), "\n") > 2 {
			t.Errorf("%s: %s", name, &log)
		}
	}
	p := newProcess(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"),
		append(real(), "RAMP_HMAC_KEY_PREVIOUS=an older key"),
		[]string{"-project", "project", "-token", token, "-network", "testnet"})
	p.kill()
	says(t, p.log.String(), "RAMP_HMAC_KEY_PREVIOUS is accepted too")
}

// A server that is stopping fails its health check first, and lets a call in
// progress finish.
func TestAServerThatStopsCutsNothingOff(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	url := "http://" + listener.Addr().String()
	entered, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-release
		}
		if _, limited := r.Context().Deadline(); limited {
			_, _ = io.WriteString(w, "whole")
		}
	})
	get := func(path string) string {
		response, err := http.Get(url + path)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	const drain = 100 * time.Millisecond
	var said time.Time
	var during string
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, listener, handler, quiet, drain, func() { said, during = time.Now(), get("/") })
	}()
	answers := make(chan string, 1)
	go func() { answers <- get("/slow") }()
	<-entered
	stop()
	await(t, func() bool { return !listens(listener.Addr().String()) },
		func() string { return "the port is still open" })
	closed := time.Now()
	close(release)
	equal(t, "the call under way", <-answers, "whole")
	check(t, <-ended)
	if during != "whole" || closed.Sub(said) < drain {
		t.Errorf("while a load balancer still sends calls, one gets %q; the port was closed after %v", during,
			closed.Sub(said))
	}
}

// A slow or broken database would take every server out at once.
func TestAServerIsReadyUntilItStops(t *testing.T) {
	game, _, err := (&settings{database: ready(t)}).open(t.Context(), false)
	check(t, err)
	db := game.db
	defer db.Close()
	a := &api{game: game, log: quiet}
	status := func(path string) int {
		recorder := httptest.NewRecorder()
		a.routes(&ramp.Handler{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder.Code
	}
	want := func(name string, health, readiness int) {
		t.Helper()
		if h, r := status("/healthz"), status("/readyz"); h != health || r != readiness {
			t.Errorf("%s: /healthz %d, /readyz %d", name, h, r)
		}
	}
	want("at first", 200, 200)
	a.stopping.Store(true)
	want("stopping", 200, 503)
	a.stopping.Store(false)
	must(db.Exec("DROP TABLE ramp_orders"))(t)
	want("the orders are missing", 200, 200)
	check(t, db.Close())
	want("no database", 200, 200)
}

var quiet = slog.New(slog.DiscardHandler)

// Whoever copies the example reads in the first lines of each file what is theirs to change.
func TestEachFileSaysWhatToChange(t *testing.T) {
	files := slices.Concat(must(filepath.Glob("*.go"))(t), must(filepath.Glob("deploy/*"))(t),
		must(filepath.Glob("deploy/.*"))(t))
	for _, file := range files {
		text := string(must(os.ReadFile(file))(t))
		first := strings.Join(strings.SplitN(text, "\n", 4)[:3], "\n")
		if !strings.HasSuffix(file, "_test.go") && !strings.Contains(first, "To make it yours: ") {
			t.Errorf("%s begins with\n%s", file, first)
		}
	}
	if len(files) < 30 {
		t.Errorf("%d files", len(files))
	}
}
