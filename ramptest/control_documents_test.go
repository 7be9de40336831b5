package ramptest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

var (
	shownRequest = regexp.MustCompile("`(GET|POST) (/control[^` ]*)`")
	shownBody    = regexp.MustCompile("`(\\{\"[^`]*\\})`")
	shownExample = regexp.MustCompile("(?s)The body of `POST /control/orders`:\n\n```json\n(.*?)```")
)

// Each request to the control API that a document shows is answered, as somebody sends it who has read no more:
// with the bodies of its line, or without one and without a header about it.
func TestTheRequestsOfTheDocumentsAreAnswered(t *testing.T) {
	documents := must.Get(filepath.Glob("../docs/*.md"))(t)
	seen := 0
	for _, document := range documents {
		text := string(must.Get(os.ReadFile(document))(t))
		for line := range strings.Lines(text) {
			for _, m := range shownRequest.FindAllStringSubmatch(line, -1) {
				bodies := []string{""}
				if m[1] == http.MethodPost {
					for _, body := range shownBody.FindAllStringSubmatch(line, -1) {
						bodies = append(bodies, body[1])
					}
				}
				if len(bodies) > 1 && m[2] != "/control/orders/{uuid}/send" { // which shows both
					bodies = bodies[1:]
				}
				if m[1]+m[2] == "POST/control/orders" {
					example := shownExample.FindStringSubmatch(text)
					require.NotNil(t, example, document)
					bodies = example[1:]
				}
				for _, body := range bodies {
					seen++
					t.Run(filepath.Base(document)+" "+m[1]+" "+m[2]+" "+body, func(t *testing.T) {
						answersAsShown(t, m[1], m[2], body)
					})
				}
			}
		}
	}
	assert.Greater(t, seen, 12)
}

func answersAsShown(t *testing.T, method, path, body string) {
	c := newCounter(t, running, onWire(t), reporting) // a result may contradict the chain
	fresh := c.initialize(t).String()
	order := c.mint(t)
	c.service.Advance(time.Minute)
	body = strings.NewReplacer("58dbfbe4-5e32-4743-a76b-9355914db260", fresh, "…", "token-1", "3", "10").Replace(body)
	path = strings.NewReplacer("{uuid}", order.UUID.String(), "wait=30s", "wait=10ms").Replace(path)
	r := must.Get(http.NewRequestWithContext(t.Context(), method, c.service.URL()+path, strings.NewReader(body)))(t)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer := must.Get(http.DefaultClient.Do(r))(t)
	text := whole(t, answer)
	assert.Equal(t, http.StatusOK, answer.StatusCode, text)
	assert.True(t, json.Valid([]byte(text)))
}
