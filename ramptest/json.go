package ramptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
)

// fieldNames are the fields of the interface that the service reads: of the
// studio's answers (2.4, 2.6, 7.2), of initialize (2.2) and of JSON-RPC (2.8).
const fieldNames = `
	success errorCode data v1 player_id name wallet_address server assets id balance userSig validatorSig
	intent network project_id token mint_fee_bps burn_fee_bps mint_method burn_method
	materials outputs amount icon_url is_non_fungible
	jsonrpc method params from to gas value nonce input fromBlock toBlock blockHash address topics`

// exact returns JSON without the fields that have the name of another one in
// another case, as UserSig. encoding/json would take them for it, and nobody else
// does.
func exact(b []byte) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // which keeps the text of a number
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one value")
	}
	dropMisnamed(value, strings.Fields(fieldNames))
	return json.Marshal(value)
}

func dropMisnamed(value any, names []string) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(field string, _ any) bool {
			return slices.ContainsFunc(names, func(name string) bool { return name != field && strings.EqualFold(name, field) })
		})
		for _, inner := range value {
			dropMisnamed(inner, names)
		}
	case []any:
		for _, inner := range value {
			dropMisnamed(inner, names)
		}
	}
}
