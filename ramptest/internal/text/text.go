// Package text has what the rooms of an emulated service say in the same words.
package text

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Of returns the text of an error of the service, without the name of its package.
func Of(err error) string { return strings.TrimPrefix(err.Error(), "ramptest: ") }

// Sentence formats an error as a sentence.
func Sentence(err error) string {
	text := Of(err)
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Lines joins the texts that are not empty.
func Lines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// Short returns the beginning of a UUID.
func Short(id uuid.UUID) string { return id.String()[:8] }

// JSON returns the JSON of a message that the service has composed.
func JSON(message any) []byte { return ramp.Must(json.Marshal(message)) }
