package codectest

import (
	"errors"
	"time"

	"gopkg.in/yaml.v3"
)

// r0 is when orders were accepted.
var r0 = time.UnixMilli(1_700_000_000_123)

// source is a configuration for koanf, and yamlParser reads it.
type source []byte

func (s source) ReadBytes() ([]byte, error)  { return s, nil }
func (source) Read() (map[string]any, error) { return nil, errors.New("not used") }

type yamlParser struct{}

func (yamlParser) Unmarshal(b []byte) (read map[string]any, err error) {
	return read, yaml.Unmarshal(b, &read)
}
func (yamlParser) Marshal(map[string]any) ([]byte, error) { return nil, errors.New("not used") }
