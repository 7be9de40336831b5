package rampbooks

import (
	"time"

	"github.com/token-ramp/ramp-go"
)

// Offer is a product with the time in which the game has sold it at this price. An order is judged
// by what held when it was accepted. To change a price, a fee, a name or a token, end the old product
// and begin a new one.
type Offer struct {
	Product ramp.Product `json:"product"`

	// From and To are when the first order for it was accepted, and the last one. If From is zero,
	// the product was always sold. If To is zero, it is still sold. Each may be wrong by 15
	// minutes.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// Always returns offers of products that the game sells at all times.
func Always(products ...ramp.Product) (offers []Offer) {
	for _, product := range products {
		offers = append(offers, Offer{Product: product})
	}
	return offers
}
