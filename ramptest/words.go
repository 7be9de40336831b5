package ramptest

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
)

// said returns the text of an error of the service.
func said(err error) string { return strings.TrimPrefix(err.Error(), "ramptest: ") }

// lines joins the texts that are not empty.
func lines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

func shortUUID(id uuid.UUID) string { return id.String()[:8] }

// amountOf converts an exact decimal to an amount. A sum may have more digits than
// an amount can hold; the result is then zero.
func amountOf(n *big.Rat) ramp.Amount {
	amount, _ := ramp.ParseAmount(books.Decimal(n))
	return amount
}

// tokens returns a number of tokens in words.
func tokens(n *big.Rat) string {
	if text := books.Grouped(n); text != "1" {
		return text + " tokens"
	}
	return "1 token"
}

// unnamed is a player whose name is unknown.
const unnamed = "the player"

// say formats an error as a sentence.
func say(err error) string {
	text := said(err)
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// encoded returns the JSON of a message that the service has composed.
func encoded(message any) []byte { return ramp.Must(json.Marshal(message)) }
