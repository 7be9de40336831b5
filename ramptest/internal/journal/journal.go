// Package journal keeps values in a file to which it appends: one line for each change, and the last line of
// a key wins. A program that is killed loses at most the line that it was writing.
//
// The file is never replaced by another one. So its links, its mode and a mount of it stay, and its lock is
// one for all of its names.
package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/token-ramp/ramp-go/internal/filelock"
)

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	path string

	mu     sync.RWMutex
	file   *os.File       // locked
	begin  int64          // of the first line
	size   int64          // of the file
	live   int64          // of the lines that count
	at     map[string]ref // the lines that count, by key
	failed error          // the first failure to write
}

// ref is the place of a line in the file.
type ref struct {
	offset int64
	length int // with its newline
}

const (
	// header is the first line of every journal. It says where its lines begin and where they end. 0 is the
	// end of the file. Elsewhere than behind the header, they are only while the file is compacted.
	header     = "ramp-journal 2 %019d %019d\n"
	headerSize = 55

	// formerHeader is the first line of a journal of an earlier release, whose lines follow.
	formerHeader = "ramp-journal 1\n"
)

// slack lets a small journal grow without being compacted all the time.
const slack = 1 << 20

// Open opens the journal in a file, or begins one. It makes the file one that only its owner may read, and
// drops a last line that is not whole.
func Open(path string) (*Journal, error) {
	file, err := filelock.Lock(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, file: file, at: make(map[string]ref)}
	if err = j.load(); err == nil {
		err = j.protect()
	}
	if err != nil {
		return nil, errors.Join(err, filelock.Unlock(file))
	}
	return j, nil
}

// protect takes the right to read the file from everybody but its owner. On Windows, the folder decides.
func (j *Journal) protect() error {
	info, err := j.file.Stat()
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := j.file.Chmod(0o600); err != nil {
		return fmt.Errorf("%s will hold secrets, but others may read it: %w", j.path, err)
	}
	return nil
}

// Line describes where the line of a key is.
func (j *Journal) Line(key string) string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	before, err := io.ReadAll(io.NewSectionReader(j.file, 0, j.at[key].offset))
	if err != nil {
		return j.path
	}
	return fmt.Sprintf("%s, line %d", j.path, 1+bytes.Count(before, []byte("\n")))
}

// load reads the file. It finishes what a journal that was killed has left.
func (j *Journal) load() error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		j.begin, j.size = headerSize, headerSize
		return j.mark(headerSize, 0)
	}
	begin, end := j.bounds()
	if begin == 0 || !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a state file", j.path)
	}
	if err := j.scan(begin, cmp.Or(end, info.Size())); err != nil {
		return err
	}
	switch {
	case begin == int64(len(formerHeader)):
		return j.compact()
	case begin != headerSize:
		return j.toFront()
	case end != 0:
		return j.cut()
	default:
		return j.file.Truncate(j.size)
	}
}

// bounds returns where the lines begin and end, as the header says. They begin at 0 if there is no header.
func (j *Journal) bounds() (begin, end int64) {
	first := make([]byte, headerSize)
	n, _ := j.file.ReadAt(first, 0) // less than a header is none
	if bytes.HasPrefix(first[:n], []byte(formerHeader)) {
		return int64(len(formerHeader)), 0
	}
	if _, err := fmt.Sscanf(string(first[:n]), header, &begin, &end); err != nil ||
		begin < headerSize || fmt.Sprintf(header, begin, end) != string(first) {
		return 0, 0
	}
	return begin, end
}

// scan reads the lines from begin to end.
func (j *Journal) scan(begin, end int64) error {
	j.begin, j.size = begin, begin
	lines := bufio.NewReaderSize(io.NewSectionReader(j.file, begin, end-begin), 1<<20)
	for {
		line, err := readLine(lines)
		if err == io.EOF { // a line without a newline was cut off
			return nil
		}
		if err != nil {
			return err
		}
		key, value, _ := bytes.Cut(line, []byte(" "))
		j.note(string(key), ref{j.size, len(line)}, len(value) == 1)
		j.size += int64(len(line))
	}
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
//
// After an error, Put writes nothing more: what came before it then fits together, as after a kill.
func (j *Journal) Put(key string, value []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.at[key]; !known && len(value) == 0 || j.failed != nil {
		return j.failed
	}
	line := slices.Concat([]byte(key), []byte(" "), value, []byte("\n"))
	if bytes.Count(line, []byte("\n")) != 1 || strings.Contains(key, " ") {
		return fmt.Errorf("the journal cannot hold %q", key)
	}
	if _, j.failed = j.file.WriteAt(line, j.size); j.failed != nil {
		_ = j.file.Truncate(j.size) // otherwise the next Open drops what was written of it
		return j.failed
	}
	j.note(key, ref{j.size, len(line)}, len(value) == 0)
	j.size += int64(len(line))
	if j.size > 2*j.live+slack {
		j.failed = j.compact()
	}
	return j.failed
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

// compact drops the lines that do not count. It may be killed at any time: the lines that count are copied
// to the end of the file, which begins there from then on, and then to its front, and it begins there.
func (j *Journal) compact() error {
	if err := j.toEnd(); err != nil {
		_ = j.file.Truncate(j.size) // they are also where they were
		return err
	}
	return j.toFront()
}

// toEnd copies the lines that count to the end of the file.
func (j *Journal) toEnd() error {
	// Lines that delete nothing fill the file until the lines that count fit before its new beginning.
	filling := strings.Repeat(" \n", int(max(0, headerSize+j.live-j.size)+1)/2)
	w := bufio.NewWriterSize(io.NewOffsetWriter(j.file, j.size), 1<<20)
	if _, err := w.WriteString(filling); err != nil {
		return err
	}
	begin := j.size + int64(len(filling))
	lines, size := j.inOrder(""), begin
	for i, l := range lines {
		if _, err := io.Copy(w, io.NewSectionReader(j.file, l.offset, int64(l.length))); err != nil {
			return err
		}
		lines[i].offset = size
		size += int64(l.length)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := j.mark(begin, 0); err != nil {
		return err
	}
	for _, l := range lines {
		j.at[l.key] = l.ref
	}
	j.begin, j.size = begin, size
	return nil
}

// toFront copies the lines from the end of the file to its front.
func (j *Journal) toFront() error {
	length, by := j.size-j.begin, j.begin-headerSize
	lines := io.NewSectionReader(j.file, j.begin, length)
	if _, err := io.Copy(io.NewOffsetWriter(j.file, headerSize), lines); err != nil {
		return err
	}
	if err := j.mark(headerSize, headerSize+length); err != nil {
		return err
	}
	for key, r := range j.at {
		j.at[key] = ref{r.offset - by, r.length}
	}
	j.begin, j.size = headerSize, headerSize+length
	return j.cut()
}

// cut ends the file where its lines end.
func (j *Journal) cut() error {
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	return j.mark(j.begin, 0)
}

// mark says in the header where the lines begin and end, after everything before is on the disk.
func (j *Journal) mark(begin, end int64) error {
	if err := j.file.Sync(); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(fmt.Appendf(nil, header, begin, end), 0); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close closes the file and releases its lock.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.file.Sync(), filelock.Unlock(j.file))
}
