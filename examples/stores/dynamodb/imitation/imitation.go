// Package imitation is a small imitation of DynamoDB over HTTP, for tests with the real client: its
// conditional writes, its transactions, its indexes that lag behind, and its limits. It knows the operations
// and the expressions of package dynamostore, and of one with several balances in an item, and refuses all
// others. It proves nothing about the real
// one, so test your store against DynamoDB, too, before you go live.
package imitation

import (
	"cmp"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to a request instead of what should.
type Fault string

// The faults. The zero value is none.
const (
	Throttled  Fault = "throttled"   // it is refused with ProvisionedThroughputExceededException
	Internal   Fault = "internal"    // it is refused with HTTP 500
	LostAnswer Fault = "lost answer" // it is done, and the connection breaks
	Conflict   Fault = "conflict"    // a transaction is canceled with TransactionConflict
)

// Server is the imitation. Set its fields before you use it.
type Server struct {
	URL string

	// Fault decides what happens to a request of an operation, such as "TransactWriteItems", which the client
	// has not sent before. It may be nil.
	Fault func(operation string) Fault

	// Lag is how far indexes, and reads that are not consistent, are behind.
	Lag time.Duration

	mu     sync.Mutex
	tables map[string]*table
	locked map[string]bool      // items of a transaction that is under way
	tokens map[string]time.Time // of transactions that were done, until when they are remembered
}

type table struct {
	keys    []string
	indexes map[string][]string
	items   map[string][]version
}

// version is an item since a time. The item is nil if it was deleted.
type version struct {
	since time.Time
	item  item
}

// Start starts an imitation, and returns it and what stops it.
func Start() (server *Server, stop func()) {
	s := &Server{tables: map[string]*table{}, locked: map[string]bool{}, tokens: map[string]time.Time{}}
	listener := httptest.NewServer(s)
	s.URL = listener.URL
	return s, listener.Close
}

// write is a write of one item.
type write struct {
	TableName                string
	Key, Item                item
	ConditionExpression      string
	UpdateExpression         string
	ExpressionAttributeNames map[string]string

	ExpressionAttributeValues item
}

type keySchema []struct{ AttributeName, KeyType string }

func (k keySchema) names() (names []string) {
	for _, key := range k {
		names = append(names, key.AttributeName)
	}
	return names
}

type request struct {
	write
	IndexName              string
	ConsistentRead         bool
	KeyConditionExpression string
	ScanIndexForward       *bool
	Limit                  int
	ExclusiveStartKey      item
	ClientRequestToken     string
	TransactItems          []struct{ Put, Update, ConditionCheck *write }

	KeySchema              keySchema
	GlobalSecondaryIndexes []struct {
		IndexName string
		KeySchema keySchema
	}
}

// ServeHTTP answers a request of the client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	fault := Fault("")
	if s.Fault != nil && strings.HasPrefix(r.Header.Get("Amz-Sdk-Request"), "attempt=1") {
		fault = s.Fault(operation)
	}
	var out any
	switch {
	case err != nil:
		err = invalid(err.Error())
	case fault == Throttled:
		err = failure{code: "ProvisionedThroughputExceededException", message: "too many requests"}
	case fault == Internal:
		err = failure{code: "InternalServerError", message: "try again"}
	case fault == Conflict && operation == "TransactWriteItems":
		reasons := make([]reason, len(in.TransactItems))
		for i := range reasons {
			reasons[i].Code = "TransactionConflict"
		}
		err = canceled(reasons)
	default:
		out, err = s.do(operation, &in)
	}
	if fault == LostAnswer {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	status := http.StatusOK
	var failed failure
	if errors.As(err, &failed) {
		status = http.StatusBadRequest
		if failed.code == "InternalServerError" {
			status = http.StatusInternalServerError
		}
		out = map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + failed.code,
			"message": failed.message, "CancellationReasons": failed.reasons}
	}
	text, _ := json.Marshal(out) // maps and texts
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (s *Server) do(operation string, in *request) (any, error) {
	switch operation {
	case "TransactWriteItems":
		return struct{}{}, s.transact(in)
	case "CreateTable":
		return struct{}{}, s.create(in)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch operation {
	case "GetItem":
		t, key, err := s.find(in.TableName, in.Key)
		if err != nil {
			return nil, err
		}
		return map[string]any{"Item": t.at(key, s.seen(in.ConsistentRead))}, nil
	case "PutItem":
		return struct{}{}, s.put(&in.write)
	case "Query":
		return s.query(in)
	}
	return nil, failure{code: "UnknownOperationException", message: "the imitation has no " + operation}
}

func (s *Server) create(in *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[in.TableName] != nil {
		return failure{code: "ResourceInUseException", message: "Table already exists: " + in.TableName}
	}
	t := &table{keys: in.KeySchema.names(), indexes: map[string][]string{}, items: map[string][]version{}}
	for _, index := range in.GlobalSecondaryIndexes {
		t.indexes[index.IndexName] = index.KeySchema.names()
	}
	s.tables[in.TableName] = t
	return nil
}

// seen is the time of which a read sees the items.
func (s *Server) seen(consistent bool) time.Time {
	if consistent {
		return time.Now()
	}
	return time.Now().Add(-s.Lag)
}

func (t *table) at(key string, seen time.Time) item {
	for _, v := range slices.Backward(t.items[key]) {
		if !v.since.After(seen) {
			return v.item
		}
	}
	return nil
}

func (t *table) newest(key string) item {
	if versions := t.items[key]; len(versions) > 0 {
		return versions[len(versions)-1].item
	}
	return nil
}

// Limits of DynamoDB.
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
	maxItem         = 400 << 10
	maxExpression   = 4096
	maxTransaction  = 100     // items
	maxTogether     = 4 << 20 // bytes of them
	maxPage         = 1 << 20 // bytes of a query
	tokenLife       = 10 * time.Minute
)

// find returns a table, and the place of a key in it.
func (s *Server) find(name string, key item) (*table, string, error) {
	t := s.tables[name]
	if t == nil {
		return nil, "", failure{code: "ResourceNotFoundException", message: "no table " + name}
	}
	place, err := placeOf(t.keys, key)
	return t, place, err
}

func placeOf(names []string, key item) (string, error) {
	place := ""
	for i, name := range names {
		v, ok := key[name]
		if !ok || v.S == nil || *v.S == "" || len(*v.S) > []int{maxPartitionKey, maxSortKey}[i] {
			return "", invalid("the key " + name + " is missing, empty, too long or no text")
		}
		place += *v.S + "\x00"
	}
	return place, nil
}

func (s *Server) put(w *write) error {
	t, key, err := s.find(w.TableName, w.Item)
	if err != nil {
		return err
	}
	if s.locked[w.TableName+key] {
		return failure{code: "TransactionConflictException", message: "Transaction is ongoing for the item"}
	}
	after, holds, err := t.change("Put", w, key)
	if err == nil && !holds {
		err = failure{code: "ConditionalCheckFailedException", message: "The conditional request failed"}
	}
	if err == nil {
		t.items[key] = append(t.items[key], version{time.Now(), after})
	}
	return err
}

// change computes an item after a write, and whether its condition holds.
func (t *table) change(kind string, w *write, key string) (after item, holds bool, err error) {
	before := t.newest(key)
	if max(len(w.ConditionExpression), len(w.UpdateExpression)) > maxExpression {
		return nil, false, invalid("Expression size has exceeded the maximum allowed size")
	}
	used := map[string]bool{}
	e := &expression{item: before, names: w.ExpressionAttributeNames, values: w.ExpressionAttributeValues,
		used: used}
	if holds, err = e.condition(w.ConditionExpression); err != nil {
		return nil, false, err
	}
	after = maps.Clone(before)
	switch {
	case kind == "Put":
		after = w.Item
	case kind == "Update" && holds:
		if before == nil {
			after = maps.Clone(w.Key)
		}
		if err := e.update(w.UpdateExpression, after); err != nil {
			return nil, false, err
		}
	}
	if holds {
		for name := range w.ExpressionAttributeValues {
			if !used[name] {
				return nil, false, invalid("Value unused in expressions: " + name)
			}
		}
	}
	for _, names := range t.indexes {
		for _, name := range names {
			v, ok := after[name]
			if ok && (v.S == nil || *v.S == "" || len(*v.S) > maxSortKey && name == names[1]) {
				return nil, false, invalid("the index key " + name + " is empty, too long or no text")
			}
		}
	}
	if after.size() > maxItem {
		return nil, false, invalid("Item size has exceeded the maximum allowed size")
	}
	return after, holds, after.check()
}

func canceled(reasons []reason) error {
	return failure{code: "TransactionCanceledException", message: "Transaction canceled", reasons: reasons}
}

// part is one item of a transaction.
type part struct {
	kind  string
	write *write
	table *table
	key   string
	after item
}

func (s *Server) transact(in *request) error {
	parts, err := s.begin(in)
	if err != nil || parts == nil {
		return err
	}
	time.Sleep(rand.N(500 * time.Microsecond)) // so that transactions meet
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		delete(s.locked, p.write.TableName+p.key)
	}
	reasons, failed := make([]reason, len(parts)), false
	for i, p := range parts {
		after, holds, err := p.table.change(p.kind, p.write, p.key)
		var wrong failure
		switch {
		case errors.As(err, &wrong):
			reasons[i], failed = reason{"ValidationError", wrong.message}, true
		case !holds:
			reasons[i], failed = reason{"ConditionalCheckFailed", "The conditional request failed"}, true
		default:
			reasons[i].Code, parts[i].after = "None", after
		}
	}
	if failed {
		return canceled(reasons)
	}
	for _, p := range parts {
		if p.kind != "ConditionCheck" {
			p.table.items[p.key] = append(p.table.items[p.key], version{time.Now(), p.after})
		}
	}
	if in.ClientRequestToken != "" {
		s.tokens[in.ClientRequestToken] = time.Now().Add(tokenLife)
	}
	return nil
}

// begin locks the items of a transaction. It returns none if the transaction was done before.
func (s *Server) begin(in *request) ([]part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.tokens[in.ClientRequestToken]) {
		return nil, nil
	}
	var parts []part
	seen, bytes := map[string]bool{}, 0
	for _, i := range in.TransactItems {
		p := part{kind: "ConditionCheck", write: i.ConditionCheck}
		switch {
		case i.Put != nil:
			p.kind, p.write = "Put", i.Put
			p.write.Key = i.Put.Item
		case i.Update != nil:
			p.kind, p.write = "Update", i.Update
		case i.ConditionCheck == nil:
			return nil, invalid("the imitation knows Put, Update and ConditionCheck")
		}
		var err error
		if p.table, p.key, err = s.find(p.write.TableName, p.write.Key); err != nil {
			return nil, err
		}
		place := p.write.TableName + p.key
		if seen[place] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[place] = true
		bytes += p.write.Item.size() + p.write.ExpressionAttributeValues.size()
		parts = append(parts, p)
	}
	if len(parts) == 0 || len(parts) > maxTransaction || bytes > maxTogether {
		return nil, invalid("a transaction has 1 to 100 items, of 4 MB together")
	}
	reasons, met := make([]reason, len(parts)), false
	for i, p := range parts {
		reasons[i].Code = "None"
		if s.locked[p.write.TableName+p.key] {
			reasons[i], met = reason{"TransactionConflict", "Transaction is ongoing for the item"}, true
		}
	}
	if met {
		return nil, canceled(reasons)
	}
	for place := range seen {
		s.locked[place] = true
	}
	return parts, nil
}

func (s *Server) query(in *request) (any, error) {
	t := s.tables[in.TableName]
	if t == nil {
		return nil, failure{code: "ResourceNotFoundException", message: "Requested resource not found"}
	}
	keys, ok := t.indexes[in.IndexName]
	switch {
	case !ok:
		return nil, invalid("The table does not have the specified index: " + in.IndexName)
	case in.ConsistentRead:
		return nil, invalid("Consistent reads are not supported on global secondary indexes")
	}
	type hit struct {
		place string
		item  item
	}
	var hits []hit
	for key := range t.items {
		i := t.at(key, s.seen(false))
		place, err := placeOf(keys, i)
		if err != nil {
			continue // not in this index
		}
		e := &expression{item: i, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
			used: map[string]bool{}}
		holds, err := e.condition(in.KeyConditionExpression)
		if err != nil {
			return nil, err
		}
		if holds {
			hits = append(hits, hit{place + key, i})
		}
	}
	back := in.ScanIndexForward != nil && !*in.ScanIndexForward
	slices.SortFunc(hits, func(a, b hit) int {
		if back {
			a, b = b, a
		}
		return cmp.Compare(a.place, b.place)
	})
	if in.ExclusiveStartKey != nil {
		from, err := placeOf(keys, in.ExclusiveStartKey)
		key, err2 := placeOf(t.keys, in.ExclusiveStartKey)
		if err := errors.Join(err, err2); err != nil {
			return nil, invalid(err.Error())
		}
		hits = slices.DeleteFunc(hits, func(h hit) bool {
			return !back && h.place <= from+key || back && h.place >= from+key
		})
	}
	found, size := []item{}, 0
	for _, h := range hits {
		if size += h.item.size(); len(found) > 0 && (size > maxPage || len(found) == in.Limit) {
			last, start := found[len(found)-1], item{}
			for _, name := range slices.Concat(keys, t.keys) {
				start[name] = last[name]
			}
			return map[string]any{"Items": found, "Count": len(found), "LastEvaluatedKey": start}, nil
		}
		found = append(found, h.item)
	}
	return map[string]any{"Items": found, "Count": len(found)}, nil
}
