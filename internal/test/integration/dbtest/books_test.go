package dbtest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// newChain returns a node whose chain has no transactions yet.
func newChain(begin, end time.Time) *rig.Node {
	return &rig.Node{Begin: begin, Head: uint64(end.Sub(begin) / time.Second), Decimals: rig.Eighteen}
}

// sends transfers hundredths of a token.
func sends(n *rig.Node, at time.Time, from, to common.Address, hundredths int64) common.Hash {
	return n.Send(at, rig.Tx{To: rig.Token, Transfers: []ramp.Transfer{rig.Moved(from, to, hundredths)}})
}

// month is a month of a game's orders, which are right but for those that are planted.
type month struct {
	*rand.Rand
	chain *rig.Node
	rows  []string
	mint  string // the intents, as they are stored
	burn  string
}

// order writes a row. It ends a minute after it was accepted.
func (m *month) order(user common.Address, d ramp.Direction, state ramp.OrderState, hash string, at time.Time) {
	intent, tx, finished := m.mint, "NULL", "NULL"
	if d == ramp.Burn {
		intent = m.burn
	}
	if hash != "" {
		tx = "'" + hash + "'"
	}
	if state != ramp.OrderAccepted {
		finished = strconv.FormatInt(at.Add(time.Minute).UnixMilli(), 10)
	}
	m.rows = append(m.rows,
		fmt.Sprintf("('%s', 'c', '%s', '%s', 'project', 'session', '%s', '0x%s', '%s', %s, '', %d, %s)",
			uuid.New(), state, d, user.Hex(), strings.Repeat("ab", 32), intent, tx, at.UnixMilli(), finished))
}

// moved moves what an order of five tokens moves, less the fee of a mint.
func (m *month) moved(user common.Address, d ramp.Direction, at time.Time) common.Hash {
	if d == ramp.Mint {
		return sends(m.chain, at, common.Address{}, user, 490)
	}
	return sends(m.chain, at, user, common.Address{}, 500)
}

// planted are the ways in which an order of a user is wrong.
var planted = map[rampbooks.FindingKind]func(m *month, user common.Address, d ramp.Direction, at time.Time){
	rampbooks.EventWithoutOrder: func(m *month, user common.Address, d ramp.Direction,
		at time.Time) {
		m.moved(user, d, at)
	},
	rampbooks.OrderWithoutEvent: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderSucceeded, "", at)
	},
	rampbooks.TransactionUndone: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderSucceeded, common.Hash{3, user[18], user[19]}.Hex(), at)
		if user[19]%3 == 0 { // another one came in its place
			m.moved(user, d, at.Add(5*time.Minute))
		}
	},
	rampbooks.EndedOtherwise: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAbandoned, "", at)
		m.moved(user, d, at.Add(5*time.Minute))
	},
	rampbooks.WaitsWithEvent: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAccepted, "", at)
		m.moved(user, d, at.Add(5*time.Minute))
	},
	rampbooks.WaitsWithoutEvent: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAccepted, "", at)
	},
	rampbooks.Differs: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		hash := sends(m.chain, at.Add(30*time.Second), common.Address{}, user, 300)
		m.order(user, ramp.Mint, ramp.OrderSucceeded, hash.Hex(), at)
	},
	rampbooks.NotCompared: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		rows := len(m.rows)
		m.order(user, d, ramp.OrderSucceeded, common.Hash{4, user[18], user[19]}.Hex(), at)
		m.rows[rows] = strings.ReplaceAll(m.rows[rows], rig.Token.Hex(), common.HexToAddress("0x01d").Hex())
	},
	rampbooks.Ambiguous: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAccepted, "", at)
		m.order(user, d, ramp.OrderAccepted, "", at.Add(time.Minute))
		m.moved(user, d, at.Add(5*time.Minute))
	},
	rampbooks.SharedTransaction: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		hash := m.moved(user, d, at.Add(30*time.Second)).Hex()
		m.order(user, d, ramp.OrderSucceeded, hash, at)
		m.order(user, d, ramp.OrderSucceeded, strings.ToUpper(hash), at.Add(time.Second))
	},
}

// fillMonth writes a month with so many orders of a thousand players, and plants 25 of each
// kind of finding.
func fillMonth(t *testing.T, p *place, orders int) *rig.Node {
	t.Helper()
	const length = 30 * 24 * time.Hour
	m := &month{Rand: rand.New(rand.NewPCG(1, 2)), chain: newChain(day0.Add(-48*time.Hour), day0.Add(length))}
	items := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(500)}}
	tokens := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: rig.Token.Hex(), Amount: ramp.NewAmount(5)}}
	written := func(intent ramp.Intent) string { return string(must.Get(json.Marshal(intent))(t)) }
	m.mint = written(ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: items, To: tokens})
	m.burn = written(ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: tokens, To: items})
	directions := []ramp.Direction{ramp.Mint, ramp.Burn}
	for n := range orders {
		at := day0.Add(length / time.Duration(orders) * time.Duration(n)).Truncate(time.Second)
		user, d := common.BigToAddress(big.NewInt(int64(1<<20+m.IntN(1000)))), directions[n%2]
		m.order(user, d, ramp.OrderSucceeded, m.moved(user, d, at.Add(20*time.Second)).Hex(), at)
	}
	for k, kind := range rampbooks.FindingKinds() {
		for n := range 25 {
			user := common.BigToAddress(big.NewInt(int64(1<<30 + k*1000 + n)))
			at := day0.Add(24*time.Hour + time.Duration(m.Int64N(int64(length-72*time.Hour)))).Truncate(time.Second)
			planted[kind](m, user, directions[n%2], at)
		}
	}
	for part := range slices.Chunk(m.rows, 500) {
		run(t, p.db,
			"INSERT INTO ramp_orders (uuid, claim, state, direction, project_id, session_id, user_address, digest,"+
				" intent, tx_hash, reason, accepted_at, finished_at) VALUES "+strings.Join(part, ", "))
	}
	p.updateStatistics(t)
	return m.chain
}

// A month of books finds what was planted, each of it, and nothing else. To measure more
// orders, set RAMP_TEST_ROWS.
func TestAMonthOfBooksFindsWhatWasPlanted(t *testing.T) {
	orders := 2000
	if text := os.Getenv("RAMP_TEST_ROWS"); text != "" {
		orders = must.Get(strconv.Atoi(text))(t)
	}
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			p := placeOn(t, d.dialect)
			chain := fillMonth(t, p, orders)
			reconciler := booksOf(t, p, chain)
			for range 2 {
				chain.Calls, chain.Requests = 0, 0
				begun := time.Now()
				books := must.Get(reconciler.Reconcile(t.Context(), day0, day0.Add(30*24*time.Hour)))(t)
				t.Logf("%d orders in %v, calls to the node: %d in %d requests",
					orders, time.Since(begun).Round(time.Millisecond), chain.Calls, chain.Requests)
				for kind, n := range books.Counts {
					equal(t, "findings of "+string(kind), n, 25)
				}
			}
		})
	}
}
