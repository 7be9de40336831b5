package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go"
)

// delegated is how the code of an account begins that lets a contract act for it (EIP-7702). It can still
// send.
var delegated = []byte{0xef, 0x01, 0x00}

// CheckAccounts returns an error for each of Payers that is a contract, which can neither send a transaction
// nor pay for one, and those of Contracts that have no code on this chain: they may be accounts, such as a
// treasury, or be mistyped. A node that does not tell the code of an address tells nothing.
func (p *Prover) CheckAccounts(ctx context.Context) (withoutCode []common.Address, err error) {
	all := append(append([]common.Address{}, p.Payers...), p.Contracts...)
	if len(all) == 0 {
		return nil, nil
	}
	codes, calls := make([]hexutil.Bytes, len(all)), make([]ramp.BatchCall, len(all))
	for i, account := range all {
		calls[i] = Call(&codes[i], "eth_getCode", account, ramp.Latest)
	}
	if calls, err = AskEach(ctx, p.Chain, calls...); err != nil {
		return nil, err
	}
	var found []error
	for i, account := range all {
		switch isPayer := i < len(p.Payers); {
		case calls[i].Err != nil:
		case isPayer && len(codes[i]) > 0 && !bytes.HasPrefix(codes[i], delegated):
			found = append(found, fmt.Errorf("ramp: Config.Payers has %s, which is a contract on this "+
				"chain: it can neither send a transaction nor pay for one; set it in Config.Contracts",
				account))
		case !isPayer && len(codes[i]) == 0:
			withoutCode = append(withoutCode, account)
		}
	}
	return withoutCode, errors.Join(found...)
}
