package storetest

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const token = "0x00000000000000000000000000000000000070c3"

// validatedAt has a higher precision than an order keeps.
var validatedAt = time.Unix(1_795_000_000, 123_456_789)

func gold(n int64) ramp.AssetAmount { return ramp.AssetAmount{ID: "gold", Amount: ramp.NewAmount(n)} }

// mint returns a validate call for a mint, and burn one for a burn.
func mint(assets ...ramp.AssetAmount) *ramp.ValidateRequest {
	r := &ramp.ValidateRequest{UserSig: "0x01", UserAddress: "0x00000000000000000000000000000000000000Aa",
		ProjectID: "project-1", UUID: uuid.New(), Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}}}
	_, _ = rand.Read(r.Digest[:]) // never fails
	for _, a := range assets {
		r.Intent.From = append(r.Intent.From, ramp.IntentAsset{Type: ramp.TypeAsset, ID: a.ID, Amount: a.Amount})
	}
	return r
}

func burn(assets ...ramp.AssetAmount) *ramp.ValidateRequest {
	r := mint(assets...)
	r.Intent.Method, r.Intent.Type = ramp.MethodBurnPermit, ramp.Disassemble
	r.Intent.From, r.Intent.To = r.Intent.To, r.Intent.From
	return r
}

func accept(session string, r *ramp.ValidateRequest) ramp.Transition {
	return ramp.Accept(ramp.Session{ID: session}, r, validatedAt)
}

// txHash returns the hash of the transaction of an order.
func txHash(r *ramp.ValidateRequest) string { return fmt.Sprintf("0x%x", sha256.Sum256(r.UUID[:])) }

// resultBy returns the transition of an order's result that names a transaction.
func resultBy(txHash, session string, r *ramp.ValidateRequest, status uint64) ramp.Transition {
	return ramp.Finish(&ramp.Result{SessionID: session, UUID: r.UUID, TxHash: txHash,
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: r.Intent}, validatedAt.Add(time.Hour))
}

func succeed(session string, r *ramp.ValidateRequest) ramp.Transition {
	return resultBy(txHash(r), session, r, 1)
}

func fail(session string, r *ramp.ValidateRequest) ramp.Transition {
	return resultBy(txHash(r), session, r, 0)
}

func abandon(string, *ramp.ValidateRequest) ramp.Transition {
	return ramp.Abandon("no transaction", validatedAt.Add(time.Hour))
}

// ending is a way in which an order of 4 gold can end.
type ending struct {
	name    string
	request func(...ramp.AssetAmount) *ramp.ValidateRequest
	end     func(session string, r *ramp.ValidateRequest) ramp.Transition
	taken   int64 // by the validate call
	given   int64 // by the ending
}

// step is a step of the order of a player with 10 gold.
type step struct {
	name          string
	next          ramp.Transition
	before, after int64 // the gold
}

// steps returns the two steps of an order.
func (e *ending) steps(session string, r *ramp.ValidateRequest) []step {
	accepted := 10 - e.taken
	return []step{
		{"validate of " + e.name, accept(session, r), 10, accepted},
		{"end of " + e.name, e.end(session, r), accepted, accepted + e.given},
	}
}

// endings are all of them.
var endings = []ending{
	{"a mint that succeeds", mint, succeed, 4, 0},
	{"a mint that fails", mint, fail, 4, 4},
	{"a mint that is abandoned", mint, abandon, 4, 4},
	{"a burn that succeeds", burn, succeed, 0, 4},
	{"a burn that fails", burn, fail, 0, 0},
	{"a burn that is abandoned", burn, abandon, 0, 0},
}
