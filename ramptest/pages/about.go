package pages

import (
	"encoding/json"
	"math/big"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// aboutOrder is the order that a validate or result call is about, as its body says.
type aboutOrder struct {
	Title   string // such as "Mint 3 tokens"; "" if the body cannot be read
	Tokens  string
	Project string
	Rows    []aboutRow
	Known   bool // what the player owned of each asset
	Short   bool // the player owned too little
}

type aboutRow struct {
	ID, Text string
	Short    bool // the player owned less than the order takes
}

// readOrder reads the order from the body of a call.
func readOrder(e *control.Event) (about aboutOrder) {
	var body struct {
		Intent  ramp.Intent `json:"intent"`
		Project string      `json:"project_id"`
	}
	if e.Request == nil || (e.Kind != control.KindValidate && e.Kind != control.KindResult) ||
		json.Unmarshal([]byte(e.Request.Body), &body) != nil {
		return about
	}
	about.Project = body.Project
	direction, err := body.Intent.Direction()
	if err != nil {
		return about
	}
	assets, tokens, verb := body.Intent.From, body.Intent.To, "takes "
	if direction == ramp.Burn {
		assets, tokens, verb = tokens, assets, "grants "
	}
	failed := e.Status == control.TxFailed
	rejected := e.Kind == control.KindResult && e.Outcome != "success" &&
		(e.Tone == verdict.Good || strings.Contains(e.Said, verdict.Contrary)) // rightly
	switch {
	case rejected && direction == ramp.Burn && !failed:
		verb = "would grant "
	case rejected && direction == ramp.Burn:
		verb = "would not grant "
	case rejected && failed:
		verb = "would give back "
	case failed && direction == ramp.Burn:
		verb = "must not grant "
	case failed:
		verb = "must give back "
	}
	if len(tokens) > 0 {
		about.Tokens = tokens[0].Amount.String()
	}
	about.Title = titleOfOrder(&control.OrderReport{Do: string(direction), Amount: about.Tokens})
	owned := make(map[string]string)
	for _, a := range e.Owned {
		owned[a.ID] = a.Amount
	}
	about.Known = len(assets) > 0
	for _, a := range assets {
		row := aboutRow{ID: a.ID, Text: verb + group(a.Amount)}
		balance, known := owned[a.ID]
		if known {
			n, _ := new(big.Rat).SetString(balance)
			row.Text += "; owned " + group(balance)
			row.Short = n != nil && n.Cmp(a.Amount.Rat()) < 0
		}
		about.Known, about.Short = about.Known && known, about.Short || row.Short
		about.Rows = append(about.Rows, row)
	}
	return about
}
