package judge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// trial drives the target through one case. After the first failure, every method does
// nothing, so that a case reads as a story without error handling.
type trial struct {
	*settings
	ctx     context.Context
	client  *http.Client
	server  *server // what all trials know of the server
	name    string  // of what it tries
	needs   need
	secrets []string // texts that no verdict may show
	calls   *calls   // what it asked

	player  ramp.Session      // the player of the case
	opener  ramp.Session      // who opens the pages of orders, if it is not their owner
	asset   string            // the asset to move
	second  string            // another asset; empty if there is none
	items   map[string]string // the assets to move where each player owns others, by session ID
	before  snapshot          // what the player owned at the beginning
	wallets map[string]string // wallet addresses that the server reports, by session ID
	ledger  *ledger           // what the server agreed to

	err error
}

// end ends the case, unless it has ended.
func (t *trial) end(why error) { t.err = cmp.Or(t.err, why) }

func (t *trial) fail(saw, want string) { t.end(&finding{saw: saw, want: want}) }

// gives records that something is given away, which counts even for a SHOULD.
func (t *trial) gives(saw, want string) {
	t.end(&finding{saw: saw, want: want, grave: true})
}

// untried ends a case for a reason that is not the server's fault.
func (t *trial) untried(format string, args ...any) {
	t.end(fmt.Errorf(format, args...))
}

func (t *trial) skip(why string) { t.end(skip(why)) }

// lacks ends a case that a setting of the target would make possible.
func (t *trial) lacks(why, set string) { t.end(unasked{why, set}) }

// said returns foreign text in a form that a verdict may show: without secrets and
// control characters. Text of this package must not go through it: redacting a word of
// it would reveal that the word is a secret.
func (t *trial) said(text string, secrets ...string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return '.'
		}
		return r
	}, redact.New(append(secrets, t.secrets...)...).Text(text))
}
