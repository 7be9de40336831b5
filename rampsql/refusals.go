package rampsql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/storable"
)

// Refused notes that the end of an order was refused, for a person: see [ramp.Refusal]. It writes
// nothing unless the order waits.
func (s *Store) Refused(ctx context.Context, id uuid.UUID, reason string) error {
	if err := s.made(); err != nil {
		return err
	}
	if problem := storable.Problem(reason, storable.MaxText); problem != "" {
		return invalid.Field("reason", problem)
	}
	now := time.Now().UnixMilli()
	query, args := s.bind(s.note, now, now, reason, id.String())
	_, err := s.change(ctx, "note the refusal of order "+id.String(), query, args)
	return err
}

// Refusals returns why the ends of some orders were refused, by their UUIDs. It has no entry for an
// order without a refusal. A refusal is kept after its order has ended.
func (s *Store) Refusals(ctx context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	found := map[uuid.UUID]ramp.Refusal{}
	for len(orders) > 0 {
		part := orders[:min(len(orders), maxDeleted)]
		orders = orders[len(part):]
		if err := s.addRefusals(ctx, found, part); err != nil {
			return nil, fmt.Errorf("ramp: refusals: %w", err)
		}
	}
	return found, nil
}

func (s *Store) addRefusals(
	ctx context.Context, found map[uuid.UUID]ramp.Refusal, orders []uuid.UUID,
) error {
	ids := make([]any, len(orders))
	for i, id := range orders {
		ids[i] = id.String()
	}
	query, args := s.bind("SELECT "+refusalColumns+" FROM ramp_refusals"+
		" WHERE uuid IN ("+marks(len(ids))+")", ids...)
	rows, err := s.config.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r ramp.Refusal
		var first, last int64
		if err := rows.Scan(&r.UUID, &first, &last, &r.Count, &r.Reason); err != nil {
			return err
		}
		r.First, r.Last = time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC()
		found[r.UUID] = r
	}
	return rows.Err()
}

// CountRefused counts the orders of a direction that wait although their end was refused, and returns
// when the first of these refusals was, or the zero time.
func (s *Store) CountRefused(ctx context.Context, d ramp.Direction) (n int, first time.Time, err error) {
	if err := cmp.Or(s.made(), requireDirection(d)); err != nil {
		return 0, time.Time{}, err
	}
	var at sql.NullInt64
	// Not a join: without statistics, a planner may read all that was ever refused, or every order.
	// The limit, which is none, lets PostgreSQL look each refusal up once.
	query, args := s.bind("SELECT COUNT(first_at), MIN(first_at) FROM (SELECT"+
		" (SELECT r.first_at FROM ramp_refusals r WHERE r.uuid = o.uuid) AS first_at"+
		" FROM ramp_orders o WHERE o.state = 'accepted' AND o.direction = $1 AND "+ours+
		" LIMIT 9223372036854775807) AS waiting", string(d))
	if err := s.config.DB.QueryRowContext(ctx, query, args...).Scan(&n, &at); err != nil {
		return 0, time.Time{}, fmt.Errorf("ramp: count refused orders: %w", err)
	}
	if at.Valid {
		first = time.UnixMilli(at.Int64).UTC()
	}
	return n, first, nil
}
