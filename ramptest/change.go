package ramptest

import (
	"cmp"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// otherDigest gives a request another digest.
func otherDigest(r *ramp.ValidateRequest) error {
	r.Digest = ramp.Digest(crypto.Keccak256([]byte("another"), r.Digest[:]))
	return nil
}

// otherAmount doubles the amounts of a request.
func otherAmount(r *ramp.ValidateRequest) error {
	r.Digest, r.Intent = ramp.Digest{}, trade.Copy(r.Intent)
	return cmp.Or(double(r.Intent.From), double(r.Intent.To))
}

// otherToken is a [fault.OffTerm].
func otherToken(intent *ramp.Intent) error {
	for _, side := range [][]ramp.IntentAsset{intent.From, intent.To} {
		if side[0].Type != ramp.TypeAsset {
			side[0].ID = common.BytesToAddress(crypto.Keccak256([]byte("another token"),
				[]byte(side[0].ID))).Hex()
		}
	}
	return nil
}

// otherRate is a [fault.OffTerm].
func otherRate(intent *ramp.Intent) error { return double(intent.To) }

// extraItem is a [fault.OffTerm].
func extraItem(intent *ramp.Intent) error {
	assets, _ := trade.Of(intent).Sides(intent)
	*assets = append(*assets,
		ramp.IntentAsset{Type: ramp.TypeAsset, ID: "extra_item", Amount: ramp.NewAmount(1)})
	return nil
}

// double doubles the amounts of one side of an intent.
func double(side []ramp.IntentAsset) (err error) {
	for i := range side {
		if side[i].Amount, err = side[i].Amount.Add(side[i].Amount); err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
	}
	return nil
}
