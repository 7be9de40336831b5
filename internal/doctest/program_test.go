package doctest

import (
	"bytes"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The program of the README is built in a new module beside a clone, with the commands of
// the README, and runs against the emulated service.
func TestTheProgramOfTheREADME(t *testing.T) {
	programs := blocks(t, "README.md", "go")[:1]
	require.True(t, strings.HasPrefix(programs[0].text, "package main\n"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	folder := t.TempDir()
	clone, err := filepath.Abs(root)
	require.NoError(t, err)
	program := strings.Replace(programs[0].text, "127.0.0.1:8080", address, 1)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))
	in := func(name string, arguments ...string) {
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s %s: %s", name, arguments, out)
	}
	in("go", "mod", "init", "example.com/game")
	commands := 0
	for _, b := range blocks(t, "README.md", "sh") {
		for line := range strings.Lines(b.text) {
			if line = strings.TrimSpace(remark.ReplaceAllString(line, "")); strings.HasPrefix(line, "go -C ../your-game mod ") {
				line = strings.NewReplacer("-C ../your-game ", "", "=../ramp-go", "="+clone).Replace(line)
				in("sh", "-c", line)
				commands++
			}
		}
	}
	require.Equal(t, 2, commands)
	in("go", "build", "-o", "game", ".")

	key, err := ramp.TextKey("the key of the console")
	require.NoError(t, err)
	const validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: common.HexToAddress(validator), Game: "http://" + address})
	var log bytes.Buffer
	game := exec.CommandContext(t.Context(), filepath.Join(folder, "game"))
	game.Env = append(os.Environ(), "RAMP_HMAC_KEY=the key of the console", "RAMP_VALIDATOR_KEY="+validatorKey,
		"RAMP_API_URL="+service.URL(), "RAMP_FRONTEND_URL="+service.URL())
	out, err := game.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, game.Start())
	t.Cleanup(func() { _ = game.Process.Kill(); _ = game.Wait() })
	line := make([]byte, 4096)
	n, err := out.Read(line)
	require.NoError(t, err)
	log.Write(line[:n])
	_, page, found := strings.Cut(strings.TrimSpace(log.String()), " open ")
	require.True(t, found, log.String())
	response, err := http.Get(page)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 200, response.StatusCode)

	shown, err := url.Parse(page)
	require.NoError(t, err)
	alice := ramp.Session{ID: shown.Query().Get("sessionId"), Token: ramp.NewAccessToken(shown.Query().Get("accessToken"))}
	require.Eventually(t, func() bool { _, err := service.Assets(t.Context(), alice); return err == nil }, time.Minute, 10*time.Millisecond)
	_, err = service.Mint(t.Context(), uuid.MustParse(shown.Query().Get("uuid")), alice, ramp.NewAmount(2), ramptest.TransactionFails())
	require.NoError(t, err)
	player, err := service.Assets(t.Context(), alice)
	require.NoError(t, err)
	require.Equal(t, "800", player.Assets[0].Balance.String())
	service.Advance(time.Minute)
	player, err = service.Assets(t.Context(), alice)
	require.NoError(t, err)
	require.Equal(t, "1000", player.Assets[0].Balance.String())
}
