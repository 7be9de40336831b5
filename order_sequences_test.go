package ramp_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// The rules of an order are told twice: by the package, and by the table after below, which is
// short enough to be checked by reading it. Every sequence of up to six calls about one order is
// made, and after each call both must agree: on its answer, on what is stored, and on what the
// player owns. Nothing is left to chance here; order_model_test.go adds what has no small table,
// such as crashes, rejections, and the many ways in which one call can be written.

// facts are what is true of an order and its player.
type facts struct {
	state    ramp.OrderState // "" if there is no order
	openedBy byte            // the digest of the validate call that opened it
	endedBy  string          // the transaction that ended it
	gold     int             // the player's
}

// The calls of the sequences. Each of the results contradicts an accepted order in at most one way.
var sequenceCalls = []sequenceCall{
	{name: "validate", digest: 1},
	{name: "another validate", digest: 2},
	{name: "success", status: 1, tx: "a"},
	{name: "failure", status: 0, tx: "b"},
	{name: "success by another transaction that lists no assets", status: 1, tx: "c", lists: "nothing"},
	{name: "failure for another session", status: 0, tx: "b", contradicts: "session_id"},
	{name: "success of another intent", status: 1, tx: "a", lists: "another", contradicts: "intent"},
	{name: "abandon"},
}

// sequenceCall is a call of a sequence: a validate call if it has a digest, a result if it has a
// transaction.
type sequenceCall struct {
	name        string
	digest      byte
	status      uint64
	tx          string
	lists       string // what the intent of a result is, if not that of the order
	contradicts string // the field that differs from the order
}

// after is the table: what must be true after a call, and its answer.
func (f facts) after(c sequenceCall, mint bool) (facts, string) {
	none, open := f.state == "", f.state == ramp.OrderAccepted
	succeeded, failed := ramp.OrderSucceeded, ramp.OrderFailed
	switch {
	case c.digest != 0:
		switch {
		case none && mint:
			return facts{ramp.OrderAccepted, c.digest, "", f.gold - 5}, "take"
		case none:
			return facts{ramp.OrderAccepted, c.digest, "", f.gold}, "nothing"
		case f.openedBy != c.digest:
			return f, "conflict in digest"
		case open:
			return f, "repeat"
		}
		return f, "finished"
	case none:
		return f, "unknown"
	case c.name == "abandon":
		switch {
		case open && mint:
			return facts{ramp.OrderAbandoned, f.openedBy, "", f.gold + 5}, "give back"
		case open:
			return facts{ramp.OrderAbandoned, f.openedBy, "", f.gold}, "nothing"
		case f.state == ramp.OrderAbandoned:
			return f, "repeat"
		}
		return f, "finished"
	case c.contradicts != "":
		return f, "conflict in " + c.contradicts
	case open && mint && c.status == 1:
		return facts{succeeded, f.openedBy, c.tx, f.gold}, "nothing"
	case open && mint:
		return facts{failed, f.openedBy, c.tx, f.gold + 5}, "give back"
	case open && c.status == 1:
		return facts{succeeded, f.openedBy, c.tx, f.gold + 5}, "grant"
	case open:
		return facts{failed, f.openedBy, c.tx, f.gold}, "nothing"
	case f.state == succeeded && c.status == 1, f.state != succeeded && c.status == 0:
		return f, "repeat"
	}
	return f, "conflict in receipt.status"
}

func TestEverySequenceOfCalls(t *testing.T) {
	longest, total := 6, 299_593 // 1 + 8 + 8^2 + … + 8^6
	if testing.Short() {
		longest, total = 4, 4_681
	}
	for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		sequences, err := trySequences(direction, longest, nil)
		require.NoError(t, err)
		require.Equal(t, total, sequences, "every sequence of a %v is tried", direction)
	}
}

// The table finds each of the wrong rules that the model finds.
func TestTheSequencesReportWrongRules(t *testing.T) {
	for name, spoil := range wrongRules() {
		t.Run(name, func(t *testing.T) {
			_, mint := trySequences(ramp.Mint, 3, spoil)
			_, burn := trySequences(ramp.Burn, 3, spoil)
			require.Error(t, cmp.Or(mint, burn))
			t.Log(cmp.Or(mint, burn))
		})
	}
}

// trySequences makes every sequence of up to longest calls about an order, and counts them. The
// error is the first disagreement with the table.
func trySequences(direction ramp.Direction, longest int, spoil spoil) (sequences int, err error) {
	rules := make([]ramp.Transition, len(sequenceCalls))
	for i, c := range sequenceCalls {
		rules[i] = c.transition(direction, spoil)
	}
	var extend func(stored *ramp.Order, before facts, sequence []string) error
	extend = func(stored *ramp.Order, before facts, sequence []string) error {
		sequences++
		if len(sequence) == longest {
			return nil
		}
		for i, c := range sequenceCalls {
			sequence := append(sequence, c.name)
			got, answer, now := before.call(rules[i], stored)
			want, wantAnswer := before.after(c, direction == ramp.Mint)
			if got != want || answer != wantAnswer {
				return fmt.Errorf("%v, %s: answered %q with %+v, instead of %q with %+v",
					direction, strings.Join(sequence, ", then "), answer, got, wantAnswer, want)
			}
			if err := extend(now, got, sequence); err != nil {
				return err
			}
		}
		return nil
	}
	return sequences, extend(nil, facts{}, nil)
}

// call makes a call, as a store does, and returns what is true afterwards.
func (f facts) call(next ramp.Transition, stored *ramp.Order) (facts, string, *ramp.Order) {
	step, err := next(stored)
	answer := answered(step, err)
	if err == nil && step.New {
		stored = &step.Order
		for _, a := range step.Effect.Assets {
			if a.ID == "gold" {
				f.gold += int(ramp.Must(step.Effect.Delta(a).Int64()))
			}
		}
	}
	if stored != nil {
		f.state, f.openedBy = stored.State, stored.Digest[0]
		f.endedBy = strings.Trim(strings.TrimPrefix(stored.TxHash, "0x"), "0")
	}
	return f, answer, stored
}

// answered names what a call came to.
func answered(step ramp.Step, err error) string {
	var conflict *ramp.ConflictError
	switch {
	case errors.As(err, &conflict):
		return "conflict in " + conflict.Field
	case errors.Is(err, ramp.ErrOrderUnknown):
		return "unknown"
	case errors.Is(err, ramp.ErrOrderFinished):
		return "finished"
	case err != nil:
		return err.Error()
	case !step.New:
		return "repeat"
	}
	return step.Effect.Kind.String()
}

// transition returns the rule of the package for a call.
func (c sequenceCall) transition(direction ramp.Direction, spoil spoil) ramp.Transition {
	at := time.Unix(1_795_000_000, 0)
	intent := modelIntent(direction == ramp.Mint, [2]int64{5, 5})
	rule, next, result := "abandon", ramp.Abandon("the test said so", at), (*ramp.Result)(nil)
	switch {
	case c.digest != 0:
		rule = "accept"
		next = ramp.Accept(ramp.Session{ID: "alice"}, &ramp.ValidateRequest{UUID: uuid.UUID{1},
			UserAddress: "0xAa", ProjectID: "project", Digest: ramp.Digest{c.digest}, Intent: intent}, at)
	case c.tx != "":
		result = &ramp.Result{SessionID: "alice", UUID: uuid.UUID{1}, TxHash: "0x" + c.tx + strings.Repeat("0", 63),
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(c.status)}, Intent: intent}
		if c.contradicts == "session_id" {
			result.SessionID = "bob"
		}
		switch c.lists {
		case "nothing":
			result.Intent = ramp.Intent{}
		case "another":
			result.Intent = modelIntent(direction == ramp.Mint, [2]int64{6, 5})
		}
		rule, next = "finish", ramp.Finish(result, at)
	}
	if spoil != nil {
		next = spoil(rule, result, next)
	}
	return next
}
