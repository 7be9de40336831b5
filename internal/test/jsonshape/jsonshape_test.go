package jsonshape_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go/internal/test/jsonshape"
)

func TestWhatAReaderWouldLose(t *testing.T) {
	for document, want := range map[string][]string{
		`{"id":"1","list":[{"n":9007199254740992}],"to":{}}`: nil,
		`{`:                             {"unexpected EOF"},
		`{"id":1}`:                      {".id is a string and a json.Number"},
		`{"list":null,"to":[]}`:         {".list is null", ".to is a map[string]interface {} and a []interface {}"},
		`{"list":[{"n":0.5}]}`:          {".list[].n is the number 0.5"},
		`{"list":[{},{"n":1e3}]}`:       {".list[].n is the number 1e3"},
		`{"n":-9007199254740993,"m":1}`: {".n is the number -9007199254740993"},
	} {
		s := jsonshape.Shapes{".id": "string", ".to": "map[string]interface {}"}
		assert.Equal(t, want, s.Add([]byte(document)), document)
	}
}
