package rampbooks

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/invalid"
)

// BatchOf returns the orders that have ended by a transaction besides the one that stores it, as
// [Reconciler.KeepBatch] has stored. Without [Config].Journal there are none.
func (r *Reconciler) BatchOf(ctx context.Context, transaction common.Hash) (orders []uuid.UUID, err error) {
	if err := r.made(); err != nil || r.config.Journal == nil {
		return nil, err
	}
	entries, err := r.config.Journal.Entries(ctx, time.Time{})
	for i := range entries {
		if e := &entries[i]; e.Finding == "" && e.Order != uuid.Nil && e.TxHash == transaction {
			orders = append(orders, e.Order)
		}
	}
	return orders, err
}

// KeepBatch stores in [Config].Journal that an order ends by a transaction which has ended other orders
// before. earlier are those that BatchOf has returned. If the journal has another one by now, KeepBatch
// fails: of two persons who add an order at the same moment, only one does. Finish of support.Orders calls it
// before it ends the order, so a crash between leaves the entry; then earlier has the order, and nothing is
// stored again. Who and why are stored, too, and must not name the player.
func (r *Reconciler) KeepBatch(
	ctx context.Context, transaction common.Hash, earlier []uuid.UUID, order uuid.UUID, who, reason string,
) error {
	if err := r.made(); err != nil {
		return err
	}
	var wrong invalid.Fields
	wrong.Require(r.config.Journal != nil, "Config.Journal", "is required")
	wrong.Reason("Entry", who, reason)
	if err := wrong.Err(); err != nil {
		return err
	}
	for _, id := range earlier {
		if id == order {
			return nil
		}
	}
	return r.config.Journal.Add(ctx, Entry{
		ID: uuid.NewSHA1(uuid.Nil, append(transaction[:], "batch"+strconv.Itoa(len(earlier))...)),
		At: r.config.Now().UTC().Truncate(time.Millisecond), Who: strings.TrimSpace(who),
		Reason: strings.TrimSpace(reason), Order: order, TxHash: transaction})
}
