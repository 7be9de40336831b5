package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go"
)

// OrderColumns are the headings of [OrderRow].
const OrderColumns = "UUID\tORDER\tASSETS\tSTATE\tACCEPTED\tENDED\tTRANSACTION\tSESSION\tADDRESS\tBY HAND"

// OrderRow writes an order as a row of a table.
func OrderRow(o *ramp.Order) string {
	ended := "-"
	if !o.FinishedAt.IsZero() {
		ended = o.FinishedAt.Format(time.RFC3339)
	}
	return strings.Join([]string{
		o.UUID.String(), string(cmp.Or(o.Direction, "unknown direction")), Quote(Assets(o.Assets)),
		string(o.State), o.AcceptedAt.Format(time.RFC3339), ended,
		Quote(o.TxHash), Quote(o.SessionID), Quote(o.UserAddress), Quote(ByHand(o.Reason, o.Settled))}, "\t")
}

// ByHand says who ended an order, why, and what else that person did instead of the game.
func ByHand(reason, settled string) string {
	if settled == "" {
		return reason
	}
	return reason + "; settled in another way: " + settled
}

// Assets writes amounts of assets, added up and sorted, such as "-500 item_gold".
func Assets(list []ramp.AssetAmount) string {
	sums := map[string]ramp.Amount{}
	for _, a := range list {
		sums[a.ID], _ = sums[a.ID].Add(a.Amount) // an amount of more than 100 digits is in no game
	}
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		texts = append(texts, sums[id].String()+" "+id)
	}
	return strings.Join(texts, ", ")
}

// Refused says how often, since when and why the end of an order was refused.
func Refused(r *ramp.Refusal) string {
	return fmt.Sprintf("%d times since %s, last %s: %s",
		r.Count, r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339), r.Reason)
}
