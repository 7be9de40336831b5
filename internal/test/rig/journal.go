package rig

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/token-ramp/ramp-go/rampbooks"
)

// Journal is a journal in memory.
type Journal struct {
	mu     sync.Mutex
	Stored []rampbooks.Entry
	OnRead func() // called once, after what is stored was read
}

func (j *Journal) Add(_ context.Context, e rampbooks.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, other := range j.Stored {
		if other.ID == e.ID {
			return errors.New("there is such an entry")
		}
	}
	j.Stored = append(j.Stored, e)
	return nil
}

func (j *Journal) Entries(_ context.Context, since time.Time) (list []rampbooks.Entry, err error) {
	j.mu.Lock()
	for _, e := range j.Stored {
		if !e.At.Before(since) {
			list = append(list, e)
		}
	}
	then := j.OnRead
	j.OnRead = nil
	j.mu.Unlock()
	if then != nil {
		then()
	}
	return list, nil
}
