package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/token-ramp/ramp-go/ramptest"
)

// stateFile keeps what must survive a restart of an emulator: the keys that it
// generated, and the state of the service. It holds secrets, so only its owner may
// read it.
type stateFile struct {
	path    string
	kept    kept
	changed atomic.Bool
}

// kept is the content of a state file.
type kept struct {
	HMACKey      string          `json:"hmac_key,omitempty"` // keys are kept only if they were generated
	HMACEncoding string          `json:"hmac_key_encoding,omitempty"`
	ValidatorKey string          `json:"validator_key,omitempty"`
	Service      json.RawMessage `json:"service"`
}

// openState reads the state file, if it exists.
func openState(path string) (*stateFile, error) {
	f := &stateFile{path: path}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, fmt.Errorf("-state: %w", err)
	case json.Unmarshal(text, &f.kept) != nil || len(f.kept.Service) == 0:
		return nil, fmt.Errorf("-state: %s is not a state file of ramp emulate; remove it to start over", path)
	default:
		return f, nil
	}
}

// save replaces the file atomically.
func (f *stateFile) save(service *ramptest.Service) (err error) {
	f.changed.Store(false) // before the snapshot, so that no later change is missed
	defer func() {
		if err != nil {
			err = fmt.Errorf("-state: %w", err)
		}
	}()
	if f.kept.Service, err = service.Save(); err != nil {
		return err
	}
	text, err := json.Marshal(f.kept)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*.tmp") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the rename, as it should
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), f.path)
}

const (
	saveEvery    = time.Second      // after a change
	saveAnyway   = 10 * time.Second // without one, because the clock moves without an event
	ticksUnasked = int(saveAnyway / saveEvery)
)

// keep saves the state regularly until stop is closed.
func (f *stateFile) keep(service *ramptest.Service, stop <-chan struct{}, report func(error)) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for idle := 0; ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if idle++; !f.changed.Load() && idle < ticksUnasked {
			continue
		}
		idle = 0
		if err := f.save(service); err != nil {
			report(err)
		}
	}
}
