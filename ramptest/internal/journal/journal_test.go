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
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// open opens a journal, and closes it when the test ends.
func open(t *testing.T, path string) *Journal {
	t.Helper()
	j := must.Get(Open(path))(t)
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
		value := must.Get(j.Get(key))(t)
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
	written := must.Get(os.ReadFile(path))(t)
	assert.Equal(t, "ramp-journal 2 0000000000000000055 0000000000000000000\na 1\nb 2\nc 3\na 4 5\nc \n",
		string(written))
	info := must.Get(os.Stat(path))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds secrets")

	j = open(t, path)
	assert.Equal(t, want, all(t, j))
	value := must.Get(j.Get("c"))(t)
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
	whole := must.Get(os.ReadFile(path))(t)
	for cut := len(whole) - 1; cut >= headerSize; cut-- {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		j := open(t, path)
		want := [][]string{nil, {"a=1"}, {"a=1", "b=2"}}[strings.Count(string(whole[headerSize:cut]), "\n")]
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
		info := must.Get(os.Stat(path))(t)
		require.LessOrEqual(t, info.Size(), 2*j.live+slack+int64(len(value))+100)
	}
	j = open2(t, j)
	assert.Len(t, all(t, j), 50)
	for i := range 50 {
		value := must.Get(j.Get(fmt.Sprint("key-", i)))(t)
		assert.True(t, bytes.HasSuffix(value, fmt.Append(nil, "x", 1_950+i)))
	}
	files := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	assert.Len(t, files, 1, "the journal alone")
}

// A journal may be killed at any step while it is compacted. The states between are made of those before,
// in the middle and after.
func TestAKillWhileAJournalIsCompactedLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	for i := range 20 {
		put(t, j, fmt.Sprint("key-", i%5), strings.Repeat("x", i%3)+fmt.Sprint(i))
	}
	put(t, j, "key-3", "")
	want := all(t, j)
	image := func() []byte { return must.Get(os.ReadFile(path))(t) }
	before := image()
	require.NoError(t, j.toEnd())
	middle := image()
	require.NoError(t, j.toFront())
	after := image()
	require.NoError(t, j.Close())
	require.Less(t, len(after), len(before)/2)
	require.Equal(t, before[headerSize:], middle[headerSize:len(before)])

	var killed [][]byte
	for n := range len(middle) - len(before) { // the lines are copied to the end
		killed = append(killed, slices.Concat(before, middle[len(before):][:n]))
	}
	for n := headerSize; n <= len(after); n++ { // and to the front
		killed = append(killed, slices.Concat(middle[:headerSize], after[headerSize:n], middle[n:]))
	}
	ends := fmt.Appendf(nil, header, headerSize, len(after))
	killed = append(killed, slices.Concat(ends, after[headerSize:], middle[len(after):]),
		slices.Concat(ends, after[headerSize:]), after)
	for n, state := range killed {
		require.NoError(t, os.WriteFile(path, state, 0o600))
		j := open(t, path)
		require.ElementsMatch(t, want, all(t, j), "state %d of %d", n, len(killed))
		put(t, j, "more", "1")
		j = open2(t, j)
		require.ElementsMatch(t, append(slices.Clone(want), "more=1"), all(t, j))
		require.NoError(t, j.Close())
	}
}

func TestAJournalOfAnEarlierReleaseIsRead(t *testing.T) {
	for _, lines := range []string{"", "a 1\n", "a 1\nb 2\na 3\n", "a 1\nb 2\na 3\ntor"} {
		path := filepath.Join(t.TempDir(), "journal")
		require.NoError(t, os.WriteFile(path, []byte(formerHeader+lines), 0o600))
		j := open(t, path)
		want := all(t, j)
		assert.Len(t, want, min(2, strings.Count(lines, "\n")))
		put(t, j, "c", "4")
		assert.Equal(t, append(want, "c=4"), all(t, open2(t, j)))
	}
}

// Two programs with one file would both write at its end.
func TestAJournalIsLockedUnderEachOfItsNames(t *testing.T) {
	folder := t.TempDir()
	path, link, hard := filepath.Join(folder, "a"), filepath.Join(folder, "b"), filepath.Join(folder, "c")
	require.NoError(t, os.Symlink("a", link)) // to a file that is not there yet
	j := open(t, link)
	require.NoError(t, os.Link(path, hard))
	for _, name := range []string{path, link, hard} {
		_, err := Open(name)
		assert.ErrorIs(t, err, ErrLocked, name)
	}
	put(t, j, "a", "1")
	value := bytes.Repeat([]byte("x"), slack)
	for range 4 {
		require.NoError(t, j.Put("big", value))
	}
	require.Less(t, j.size, int64(3*slack), "it was compacted")
	require.NoError(t, j.Close())
	info := must.Get(os.Lstat(link))(t)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "it is still a link")
	for _, name := range []string{path, link, hard} {
		j := open(t, name)
		assert.Len(t, all(t, j), 2, name)
		require.NoError(t, j.Close())
	}
}

func TestOnlyTheOwnerMayReadAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(path, nil, 0o644)) // touch
	open(t, path)
	info := must.Get(os.Stat(path))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// What was written before an error fits together, and nothing that would not follows.
func TestAJournalEndsAtTheFirstLineThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	put(t, j, "a", "1")
	writable := j.file
	j.file = must.Get(os.Open(path))(t)
	failed := j.Put("b", []byte("2"))
	require.ErrorContains(t, failed, path)
	require.NoError(t, j.file.Close())
	j.file = writable
	assert.Equal(t, failed, j.Put("c", []byte("3")))
	assert.Equal(t, []string{"a=1"}, all(t, open2(t, j)))
}

func TestAnotherFileIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thesis")
	for _, text := range []string{"my thesis", "my thesis\n", "{}\n", "ramp-journal 3 and so on\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := Open(path)
		assert.ErrorContains(t, err, "is not a state file")
		left := must.Get(os.ReadFile(path))(t)
		assert.Equal(t, text, string(left))
		info := must.Get(os.Stat(path))(t)
		assert.Equal(t, os.FileMode(0o644), info.Mode().Perm())
	}
	_, err := Open(os.DevNull)
	assert.ErrorContains(t, err, "is not a state file")
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
	values := must.Get(j.Values(keys))(t)
	for i := range keys {
		assert.Equal(t, want[i], string(values[i]))
	}
}
