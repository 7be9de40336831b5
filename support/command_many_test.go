package support_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The service was out for a day, and a person has hundreds of orders with one reason. Each is judged when it is
// shown, and again when it is ended.
func TestManyOrdersAreEndedWithOneReason(t *testing.T) {
	s := rig.NewShop(t)
	done := s.Place(t, s.Service.Mint, 1).UUID.String() // it shows that the node lists mints
	never := []string{}
	for range 3 {
		never = append(never, s.Place(t, s.Service.Mint, 1, ramptest.StaysPending()).UUID.String())
	}
	s.Service.Advance(14 * time.Hour)
	young := s.Place(t, s.Service.Mint, 1, ramptest.StaysPending()).UUID.String()
	gold := s.Gold
	run := func(name string, args ...string) (string, error) { return decided(t, s, name, args...) }
	var listed []struct{ UUID uuid.UUID }
	require.NoError(t, json.Unmarshal([]byte(must.Get(rig.RunCommand(t, s.Office, "list", "-json"))(t)), &listed))
	require.Len(t, listed, 3)
	assert.Equal(t, never[0], listed[0].UUID.String())
	assert.Equal(t, "[]\n", must.Get(rig.RunCommand(t, s.Office, "list", "-json", "-session", "nobody"))(t))

	file := filepath.Join(t.TempDir(), "orders")
	ids := append(never, done, young, never[0])
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(ids, " a comment\n\n")+"\n"), 0o600))
	for _, args := range [][]string{{"-file", file}, ids} {
		shown := must.Get(run("abandon", args...))(t)
		assert.Equal(t, 3, strings.Count(shown, "would be ended; the game would move: give back +100 item_gold"), shown)
		assert.Contains(t, shown, done+" would not be ended: ")
		assert.Contains(t, shown, young+" would not be ended: ")
		assert.Contains(t, shown, "orders: 5, of which would be ended: 3; end them with -yes\n")
	}
	assert.Equal(t, gold, s.Gold, "nothing was done")
	for _, alone := range []string{"-early", "-against-evidence", "-without-evidence", "-settled=by mail"} {
		_, err := run("abandon", alone, "-yes", "-file", file)
		assert.ErrorContains(t, err, "are for one UUID", alone)
	}
	_, err := rig.RunCommand(t, s.Office, "abandon", "-yes", "-file", file)
	assert.ErrorContains(t, err, "Decision.Who")

	said, err := run("abandon", "-yes", "-file", file)
	assert.ErrorContains(t, err, done+" was not ended")
	assert.ErrorContains(t, err, young+" was not ended")
	assert.Contains(t, said, "orders: 5, of which were ended: 3\n")
	assert.Equal(t, gold+300, s.Gold)
	said, _ = run("abandon", "-yes", "-file", file)
	assert.Contains(t, said, "orders: 5, of which were ended: 0\n")
	assert.Equal(t, gold+300, s.Gold, "once")
	stored := must.Get(s.Store.Order(t.Context(), listed[0].UUID))(t)
	assert.Equal(t, "bob: case 1", stored.Reason)
}

// Each of many orders is finished with the transaction that proves how it ended, and fits no other.
func TestManyOrdersAreFinishedAsTheirTransactionsEnded(t *testing.T) {
	s := rig.NewShop(t)
	ended := s.Place(t, s.Service.Burn, 3).UUID.String()
	minted := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever()).UUID.String()
	burned := s.Place(t, s.Service.Burn, 1, ramptest.ResultNever()).UUID.String()
	s.Service.Advance(14 * time.Hour)
	gold := s.Gold
	run := func(name string, args ...string) (string, error) { return decided(t, s, name, args...) }
	shown := must.Get(run("finish", minted, burned, ended))(t)
	assert.Contains(t, shown, minted+" would be ended; the game would move: nothing")
	assert.Contains(t, shown, burned+" would be ended; the game would move: grant +100 item_gold")
	assert.Contains(t, shown, ended+" would not be ended: ")
	said, err := run("finish", "-yes", minted, burned, ended)
	assert.ErrorContains(t, err, ended+" was not ended")
	assert.Contains(t, said, "orders: 3, of which were ended: 2\n")
	assert.Equal(t, gold+100, s.Gold)
	_, err = run("finish", "-tx", "0x"+strings.Repeat("ab", 32), minted, burned)
	assert.ErrorContains(t, err, "-tx is for one UUID")

	file := filepath.Join(t.TempDir(), "orders")
	require.NoError(t, os.WriteFile(file, []byte(burned+"\nUUID DIRECTION\n"), 0o600))
	_, err = run("finish", "-file", file)
	assert.ErrorContains(t, err, `line 2: "UUID" is not a UUID`)
	_, err = run("finish", "-file", file, burned)
	assert.ErrorContains(t, err, "-file has the UUIDs")
}

// decided runs a command with a decision.
func decided(t *testing.T, s *rig.Shop, name string, args ...string) (string, error) {
	return rig.RunCommand(t, s.Office, name, append([]string{"-who", "bob", "-reason", "case 1"}, args...)...)
}
