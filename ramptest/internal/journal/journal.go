// Package journal keeps values in a file to which it only appends: one line for each
// change, and the last line of a key wins. A program that is killed loses at most the
// line that it was writing.
package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/token-ramp/ramp-go/internal/filelock"
)

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	path string
	lock *os.File

	mu   sync.RWMutex
	file *os.File
	size int64          // of the file
	live int64          // of the lines that count
	at   map[string]ref // the lines that count, by key
}

// ref is the place of a line in the file.
type ref struct {
	offset int64
	length int // with its newline
}

// header is the first line of every journal.
const header = "ramp-journal 1\n"

// slack lets a small journal grow without being compacted all the time.
const slack = 1 << 20

// Open opens the journal in a file, or begins one. Only its owner may read the file. It
// drops a last line that is not whole.
func Open(path string) (*Journal, error) {
	held, err := filelock.Lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, lock: held}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		err = j.load()
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Line describes where the line of a key is.
func (j *Journal) Line(key string) string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	before, err := os.ReadFile(j.path)
	if at := j.at[key].offset; err == nil && at <= int64(len(before)) {
		return fmt.Sprintf("%s, line %d", j.path, 1+bytes.Count(before[:at], []byte("\n")))
	}
	return j.path
}

// load reads the file.
func (j *Journal) load() error {
	j.at = make(map[string]ref)
	lines := bufio.NewReaderSize(j.file, 1<<20)
	for {
		line, err := readLine(lines)
		if err == io.EOF { // a line without a newline was cut off
			break
		}
		if err != nil {
			return err
		}
		if j.size == 0 && string(line) != header {
			return fmt.Errorf("%s is not a state file", j.path)
		}
		if j.size > 0 {
			key, value, _ := bytes.Cut(line, []byte(" "))
			j.note(string(key), ref{j.size, len(line)}, len(value) == 1)
		}
		j.size += int64(len(line))
	}
	if j.size == 0 {
		if rest, err := j.file.Stat(); err != nil || rest.Size() > 0 {
			return errors.Join(err, fmt.Errorf("%s is not a state file", j.path))
		}
		if _, err := j.file.WriteString(header); err != nil {
			return err
		}
		j.size = int64(len(header))
	}
	return j.file.Truncate(j.size)
}

// readLine returns a line with its newline, which is valid until the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	whole := bytes.Clone(line)
	for err == bufio.ErrBufferFull {
		line, err = r.ReadSlice('\n')
		whole = append(whole, line...)
	}
	return whole, err
}

// note enters a line in the index.
func (j *Journal) note(key string, r ref, deleted bool) {
	j.live -= int64(j.at[key].length)
	if deleted {
		delete(j.at, key)
		return
	}
	j.at[key] = r
	j.live += int64(r.length)
}

// Put sets the value of a key. Neither may contain a newline, and the key no space. An
// empty value deletes the key.
func (j *Journal) Put(key string, value []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.at[key]; !known && len(value) == 0 {
		return nil
	}
	line := slices.Concat([]byte(key), []byte(" "), value, []byte("\n"))
	if bytes.Count(line, []byte("\n")) != 1 || strings.Contains(key, " ") {
		return fmt.Errorf("the journal cannot hold %q", key)
	}
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		return err // what was written is overwritten by the next line
	}
	j.note(key, ref{j.size, len(line)}, len(value) == 0)
	j.size += int64(len(line))
	if j.size > 2*j.live+slack {
		return j.compact()
	}
	return nil
}

// Get returns the value of a key; nil if it has none.
func (j *Journal) Get(key string) ([]byte, error) {
	values, err := j.read([]string{key}, 0)
	return values[0], err
}

// Values returns the values of keys, in their order. It is fastest if they are in the order
// in which they were last set, because it reads what lies beside each other at once.
func (j *Journal) Values(keys []string) ([][]byte, error) { return j.read(keys, 1<<20) }

// read returns the values of keys. It reads at least as many bytes at once as ahead says.
func (j *Journal) read(keys []string, ahead int) ([][]byte, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	values := make([][]byte, len(keys))
	var piece []byte // of the file
	var from int64
	for i, key := range keys {
		r, ok := j.at[key]
		if !ok {
			continue
		}
		if r.offset < from || r.offset+int64(r.length) > from+int64(len(piece)) {
			piece, from = make([]byte, min(int64(max(ahead, r.length)), j.size-r.offset)), r.offset
			if _, err := j.file.ReadAt(piece, from); err != nil {
				return values, err
			}
		}
		line := piece[r.offset-from:][:r.length]
		values[i] = line[len(key)+len(" ") : r.length-len("\n")]
	}
	return values, nil
}

// Keys returns the keys that begin with prefix, in the order in which they were last set.
func (j *Journal) Keys(prefix string) []string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	lines := j.inOrder(prefix)
	keys := make([]string, len(lines))
	for i, l := range lines {
		keys[i] = l.key
	}
	return keys
}

// line is a key with its place.
type line struct {
	key string
	ref
}

// inOrder returns the lines whose key begins with prefix.
func (j *Journal) inOrder(prefix string) []line {
	var lines []line
	for key, r := range j.at {
		if strings.HasPrefix(key, prefix) {
			lines = append(lines, line{key, r})
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.offset, b.offset) })
	return lines
}

// compact replaces the file by one with only the lines that count.
func (j *Journal) compact() (err error) {
	lines := j.inOrder("")
	next, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+".*.tmp") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, next.Close(), os.Remove(next.Name()))
		}
	}()
	moved := make([]ref, 0, len(lines))
	size := int64(len(header))
	w := bufio.NewWriterSize(next, 1<<20)
	if _, err = w.WriteString(header); err != nil {
		return err
	}
	for _, l := range lines {
		if _, err = io.Copy(w, io.NewSectionReader(j.file, l.offset, int64(l.length))); err != nil {
			return err
		}
		moved = append(moved, ref{size, l.length})
		size += int64(l.length)
	}
	if err = errors.Join(w.Flush(), next.Sync()); err != nil {
		return err
	}
	if err = os.Rename(next.Name(), j.path); err != nil {
		return err
	}
	_ = j.file.Close() // it has been replaced
	j.file, j.size = next, size
	for i, l := range lines {
		j.at[l.key] = moved[i]
	}
	return nil
}

// Close closes the file and releases its lock.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if j.file != nil {
		err = errors.Join(j.file.Sync(), j.file.Close())
	}
	return errors.Join(err, filelock.Unlock(j.lock))
}
