package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// open opens a journal, and closes it when the test ends.
func open(t *testing.T, path string) *Journal {
	t.Helper()
	j := ramp.Must(Open(path))
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// put sets keys and values, which are pairs.
func put(t *testing.T, j *Journal, pairs ...string) {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		require.NoError(t, j.Put(pair[0], []byte(pair[1])))
	}
}

// all returns the keys and values, in the order in which they were last set.
func all(t *testing.T, j *Journal) (list []string) {
	t.Helper()
	for _, key := range j.Keys("") {
		value := ramp.Must(j.Get(key))
		list = append(list, key+"="+string(value))
	}
	return list
}

func TestTheLastLineOfAKeyWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	put(t, j, "a", "1", "b", "2", "c", "3", "a", "4 5", "c", "", "d", "")
	want := []string{"b=2", "a=4 5"}
	assert.Equal(t, want, all(t, j))
	require.NoError(t, j.Close())
	written := ramp.Must(os.ReadFile(path))
	assert.Equal(t, "ramp-journal 1\na 1\nb 2\nc 3\na 4 5\nc \n", string(written))
	info := ramp.Must(os.Stat(path))
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds secrets")

	j = open(t, path)
	assert.Equal(t, want, all(t, j))
	value := ramp.Must(j.Get("c"))
	assert.Nil(t, value)
}

// open2 closes a journal and opens it again.
func open2(t *testing.T, j *Journal) *Journal {
	require.NoError(t, j.Close())
	return open(t, j.path)
}

// A process may be killed at any byte of a line.
func TestATornLastLineIsDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	put(t, j, "a", "1", "b", "2", "a", "longer")
	require.NoError(t, j.Close())
	whole := ramp.Must(os.ReadFile(path))
	for cut := len(whole) - 1; cut >= len(header); cut-- {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		j := open(t, path)
		want := [][]string{nil, {"a=1"}, {"a=1", "b=2"}}[strings.Count(string(whole[len(header):cut]), "\n")]
		assert.Equal(t, want, all(t, j), "cut at %d", cut)
		require.NoError(t, j.Put("c", []byte("3")), "it goes on")
		j = open2(t, j)
		assert.Equal(t, append(want, "c=3"), all(t, j))
		require.NoError(t, j.Close())
	}
}

func TestAJournalStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	value := bytes.Repeat([]byte("x"), 10_000)
	for i := range 2_000 {
		require.NoError(t, j.Put(fmt.Sprint("key-", i%50), append(value, fmt.Sprint(i)...)))
		info := ramp.Must(os.Stat(path))
		require.LessOrEqual(t, info.Size(), 2*j.live+slack+int64(len(value))+100)
	}
	j = open2(t, j)
	assert.Len(t, all(t, j), 50)
	for i := range 50 {
		value := ramp.Must(j.Get(fmt.Sprint("key-", i)))
		assert.True(t, bytes.HasSuffix(value, fmt.Append(nil, "x", 1_950+i)))
	}
	files := ramp.Must(os.ReadDir(filepath.Dir(path)))
	assert.Len(t, files, 2, "the journal and its lock")
}

func TestAnotherFileIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thesis")
	for _, text := range []string{"my thesis", "my thesis\n", "{}\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Open(path)
		assert.ErrorContains(t, err, "is not a state file")
		left := ramp.Must(os.ReadFile(path))
		assert.Equal(t, text, string(left))
	}
}

func TestValuesAreInTheOrderOfTheirKeys(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	var keys, want []string
	for i := range 50 {
		// 10 of them are read at once
		key, value := fmt.Sprint("key-", i%20), fmt.Sprint(i, strings.Repeat("x", 100_000))
		require.NoError(t, j.Put(key, []byte(value)))
		if i >= 30 {
			keys, want = append(keys, key), append(want, value)
		}
	}
	keys, want = append(keys, keys[3], "none", keys[0]), append(want, want[3], "", want[0])
	values := ramp.Must(j.Values(keys))
	for i := range keys {
		assert.Equal(t, want[i], string(values[i]))
	}
}
