package dynamostore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

var (
	_ rampproof.OrderFinder = (*Store)(nil)
	_ rampbooks.OrderLister = (*Store)(nil)
)

const end = "~" // sorts after every key

// behind sorts right after a key, and before right before it, so that a page begins beside an order.
func behind(key string) string { return key + "!" }
func before(key string) string { last := len(key) - 1; return key[:last] + string(key[last]-1) + end }

// query is a part of an index.
type query struct {
	index    [2]string
	value    string // of the first key
	from, to string // between which the second key is, without to; empty for no bound
	newest   bool   // first
	limit    int
}

// page returns the orders of a query.
func (s *Store) page(ctx context.Context, q query) (found []row, err error) {
	q.limit, q.to = cmp.Or(q.limit, 100), cmp.Or(q.to, end)
	if q.from > q.to {
		return nil, nil
	}
	in := &dynamodb.QueryInput{TableName: &s.Orders, IndexName: &q.index[0], Limit: aws.Int32(int32(q.limit)),
		ScanIndexForward:         aws.Bool(!q.newest),
		KeyConditionExpression:   aws.String("#first = :value AND #second BETWEEN :from AND :to"),
		ExpressionAttributeNames: map[string]string{"#first": q.index[0], "#second": q.index[1]},
		ExpressionAttributeValues: attributes{":value": text(q.value),
			":from": text(cmp.Or(q.from, "0")), ":to": text(q.to)},
	}
	for {
		out, err := s.Client.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			r, err := rowOf(item)
			if err != nil {
				return nil, fmt.Errorf("dynamostore: %s: %w", textOf(item["id"]), err)
			}
			if found = append(found, r); len(found) == q.limit {
				return found, nil
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return found, nil
		}
	}
}

func orders(rows []row, err error) ([]ramp.Order, error) {
	list := make([]ramp.Order, len(rows))
	for i, r := range rows {
		list[i] = *r.order
	}
	return list, err
}

// SessionOrders lists the orders of a session, newest first.
func (s *Store) SessionOrders(
	ctx context.Context, sessionID string, page ramp.OrderPage,
) ([]ramp.Order, error) {
	return s.newest(ctx, indexes[2], sessionKey(strings.TrimSpace(sessionID)), page)
}

// UserOrders lists the orders of a wallet, newest first. The case of an address is only a checksum.
func (s *Store) UserOrders(ctx context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	return s.newest(ctx, indexes[3], walletKey(address), page)
}

func (s *Store) newest(
	ctx context.Context, index [2]string, value string, page ramp.OrderPage,
) ([]ramp.Order, error) {
	q := query{index: index, value: value, newest: true, limit: page.Limit}
	if !page.After.AcceptedAt.IsZero() {
		q.to = before(sortKey(page.After.AcceptedAt, page.After.UUID))
	}
	return orders(s.page(ctx, q))
}

// Ended lists the orders that ended from a time to before another, in the order of their ends.
func (s *Store) Ended(ctx context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	q := query{index: indexes[1], value: endedKey, from: moment(from), to: moment(to), limit: page.Limit}
	if !page.After.FinishedAt.IsZero() {
		q.from = max(q.from, behind(sortKey(page.After.FinishedAt, page.After.UUID)))
	}
	return orders(s.page(ctx, q))
}

// Waiting lists the orders of a direction that were accepted before a time and have not ended, oldest first.
func (s *Store) Waiting(
	ctx context.Context, d ramp.Direction, until time.Time, page ramp.OrderPage,
) ([]ramp.Order, error) {
	return orders(s.waiting(ctx, d, moment(until), page))
}

func (s *Store) waiting(
	ctx context.Context, d ramp.Direction, to string, page ramp.OrderPage,
) ([]row, error) {
	q := query{index: indexes[0], value: string(d), to: to, limit: page.Limit}
	if !page.After.AcceptedAt.IsZero() {
		q.from = behind(sortKey(page.After.AcceptedAt, page.After.UUID))
	}
	return s.page(ctx, q)
}

// eachWaiting calls f for each order that waits, oldest first.
func (s *Store) eachWaiting(ctx context.Context, d ramp.Direction, to string, f func(row)) error {
	for page := (ramp.OrderPage{Limit: 500}); ; {
		rows, err := s.waiting(ctx, d, to, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			f(r)
			page.After = *r.order
		}
		if len(rows) < page.Limit {
			return nil
		}
	}
}

// CountWaiting counts the orders that Waiting lists, and returns when the oldest was accepted, or the zero
// time.
func (s *Store) CountWaiting(
	ctx context.Context, d ramp.Direction, until time.Time,
) (n int, oldest time.Time, err error) {
	err = s.eachWaiting(ctx, d, moment(until), func(r row) {
		if n++; n == 1 {
			oldest = r.order.AcceptedAt
		}
	})
	return n, oldest, err
}

// Order returns a stored order.
func (s *Store) Order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	r, err := s.read(ctx, id)
	return stored(r, err, id.String())
}

// OrderByTransaction returns the order that a transaction has ended.
func (s *Store) OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error) {
	r, err := s.byTransaction(ctx, hash.Hex())
	return stored(r, err, "transaction "+hash.Hex())
}

func stored(r row, err error, what string) (ramp.Order, error) {
	if err == nil && r.order == nil {
		err = ramp.ErrOrderUnknown
	}
	if err != nil {
		return ramp.Order{}, fmt.Errorf("dynamostore: %s: %w", what, err)
	}
	return *r.order, nil
}

// NewestSuccess returns the last order that succeeded by a transaction, among those of a network and those
// without one. It may be some milliseconds old.
func (s *Store) NewestSuccess(ctx context.Context, network ramp.Network) (ramp.Order, error) {
	for q := (query{index: indexes[1], value: endedKey, newest: true, limit: 50}); ; {
		rows, err := s.page(ctx, q)
		if err != nil {
			return ramp.Order{}, err
		}
		for _, r := range rows {
			o := r.order
			if o.State == ramp.OrderSucceeded && o.TxHash != "" && (o.Network == network || o.Network == "") {
				return *o, nil
			}
			q.to = before(sortKey(o.FinishedAt, o.UUID))
		}
		if len(rows) < q.limit {
			return stored(row{}, nil, "newest success")
		}
	}
}

// Refused implements the optional method of ramp.Store.
func (s *Store) Refused(ctx context.Context, id uuid.UUID, reason string) error {
	for try := 0; ; try++ {
		r, err := s.read(ctx, id)
		if err != nil || r.order == nil || r.order.State != ramp.OrderAccepted {
			return err
		}
		now := number(strconv.FormatInt(time.Now().UnixMilli(), 10))
		refused, _ := refusal(r)
		if refused.Count == 0 {
			r.item["refused_first"] = now
		}
		r.item["refused_last"], r.item["refused_reason"] = now, text(reason)
		r.item["refused_count"] = number(strconv.Itoa(refused.Count + 1))
		if done, err := s.put(ctx, r.item, orderKey(id), r.revision); done || err != nil {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// refusal returns what Refused has noted of an order.
func refusal(r row) (ramp.Refusal, bool) {
	count, err := strconv.Atoi(textOf(r.item["refused_count"]))
	if err != nil || r.order == nil {
		return ramp.Refusal{}, false
	}
	at := func(name string) time.Time {
		n, _ := strconv.ParseInt(textOf(r.item[name]), 10, 64)
		return time.UnixMilli(n).UTC()
	}
	return ramp.Refusal{UUID: r.order.UUID, First: at("refused_first"), Last: at("refused_last"),
		Count: count, Reason: textOf(r.item["refused_reason"])}, true
}

// Refusals returns why the ends of some orders were refused, by their UUIDs.
func (s *Store) Refusals(ctx context.Context, ids ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error) {
	found := map[uuid.UUID]ramp.Refusal{}
	for _, id := range ids {
		r, err := s.read(ctx, id)
		if err != nil {
			return nil, err
		}
		if refused, ok := refusal(r); ok {
			found[id] = refused
		}
	}
	return found, nil
}

// CountRefused counts the orders of a direction that wait although their end was refused, and returns when
// the first of these refusals was, or the zero time.
func (s *Store) CountRefused(ctx context.Context, d ramp.Direction) (n int, first time.Time, err error) {
	err = s.eachWaiting(ctx, d, end, func(r row) {
		refused, ok := refusal(r)
		if !ok {
			return
		}
		if n++; first.IsZero() || refused.First.Before(first) {
			first = refused.First
		}
	})
	return n, first, err
}
