package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampsql"
)

// The maximum cost of a body of 1 MiB of any shape, from a caller who has the key.
const (
	bodySize      = 1 << 20
	concurrent    = 20
	mostHeap      = 250 << 20
	mostParseTime = 50 * time.Millisecond
)

// A shape is a body that repeats a text up to the maximum size.
type shape struct{ name, before, repeat, separator, after string }

func (s shape) body() []byte {
	next := s.separator + s.repeat
	room := bodySize - len(s.before) - len(s.repeat) - len(s.after)
	return []byte(s.before + s.repeat + strings.Repeat(next, room/len(next)) + s.after)
}

// around splits a message at the mark that the repeated text replaces.
func around(t testing.TB, name, message, repeat, separator string) shape {
	before, after, found := strings.Cut(message, "@")
	if !found {
		t.Fatal("no mark in ", name)
	}
	return shape{name, before, repeat, separator, after}
}

const (
	resultHead = `{"session_id":"hero-4821","uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","tx_hash":"` +
		transactionHash + `",`
	emptyResult = resultHead + `"receipt":{"status":"0x1","logs":[]},"intent":` + mintIntent
)

// resultShapes are authentic results of 1 MiB.
func resultShapes(t testing.TB) []shape {
	receipt := func(name, members, repeat, separator string) shape {
		return around(t, name, resultHead+`"receipt":{"status":"0x1",`+members+`},"intent":`+mintIntent+`}`,
			repeat, separator)
	}
	log := func(name, members, repeat, separator string) shape {
		return receipt("one log, "+name, `"logs":[{`+members+`}]`, repeat, separator)
	}
	all := []shape{
		receipt("empty logs", `"logs":[@]`, `{}`, ","),
		receipt("whole logs", `"logs":[@]`, strings.Trim(transferLogs(1, "0"), "[]"), ","),
		receipt("logs of a wrong type", `"logs":[@]`, `0`, ","),
		log("topics", `"topics":[@]`, `"`+transactionHash+`"`, ","),
		log("empty topics", `"topics":[@]`, `""`, ","),
		receipt("logs of empty topics", `"logs":[@]`, `{"topics":[0`+strings.Repeat(",0", 99)+`]}`, ","),
		receipt("logs of escaped names", `"logs":[{@}]`, `"\u0061":0`, ","),
		receipt("logs of escaped hex", `"logs":[@]`, `{"data":"\u0030x","topics":["\u0030x"]}`, ","),
		receipt("repeated members of logs", `"logs":[@]`,
			`{"data":0,"data":0,"topics":0,"topics":0,"removed":0,"removed":0}`, ","),
		log("data", `"data":"0x@"`, "00", ""),
		receipt("a long bloom", `"logsBloom":"0x@"`, "00", ""),
		receipt("a long gasUsed", `"gasUsed":"0x@"`, "f", ""),
		receipt("a long number", `"gasUsed":@`, "9", ""),
		receipt("repeated names", `@`, `"gasUsed":"0x1"`, ","),
		receipt("repeated statuses", `@`, `"status":"0x1"`, ","),
		around(t, "a long hash",
			`{"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","tx_hash":"@","receipt":{"status":"0x1"},"intent":`+
				mintIntent+`}`,
			`\u0041`, ""),
	}
	return append(all, commonShapes(t, emptyResult, resultHead+`"receipt":{"status":"0x1"}`)...)
}

// validateShapes are authentic validates of 1 MiB.
func validateShapes(t testing.TB) []shape {
	head := strings.TrimSuffix(validateBody, `,"intent":`+mintIntent+`}`)
	signature := strings.Replace(validateBody, `"user_sig":"0x`, `"user_sig":"0x@`, 1)
	all := []shape{
		around(t, "a long signature", signature, "ab", ""),
		around(t, "an escaped signature", signature, `\u0061\u0062`, ""),
	}
	return append(all, commonShapes(t, strings.TrimSuffix(validateBody, "}"), head)...)
}

// commonShapes extend a message that lacks its last brace, and one that also lacks its
// intent.
func commonShapes(t testing.TB, message, withoutIntent string) []shape {
	unknown := func(name, value, repeat, separator string) shape {
		return around(t, "unknown, "+name, message+`,"unknown":`+value+`}`, repeat, separator)
	}
	from := func(name, repeat string) shape {
		return around(t, "from, "+name, withoutIntent+`,"intent":{"method":"mint","type":"assemble","from":[@],`+
			`"to":[{"type":"ERC20","id":"`+tokenAddress+`","amount":10}]}}`, repeat, ",")
	}
	to := func(name, repeat string) shape {
		return around(t, "to, "+name, withoutIntent+`,"intent":{"method":"mint","type":"assemble",`+
			`"from":[{"type":"asset","id":"gold","amount":100}],"to":[@]}}`, repeat, ",")
	}
	const deep = 5000 // encoding/json rejects more than 10,000
	return []shape{
		unknown("empty strings", `[@]`, `""`, ","),
		unknown("numbers", `[@]`, `0`, ","),
		unknown("empty arrays", `[@]`, `[]`, ","),
		unknown("empty objects", `[@]`, `{}`, ","),
		unknown("deep arrays", `[@]`, strings.Repeat("[", deep)+strings.Repeat("]", deep), ","),
		unknown("deep objects", `[@]`, strings.Repeat(`{"a":`, deep)+"0"+strings.Repeat("}", deep), ","),
		unknown("a long string", `"@"`, `x`, ""),
		unknown("escapes", `"@"`, `\ud83d\ude00`, ""),
		unknown("a long number", `@`, `1`, ""),
		around(t, "unknown, names", message+`,@}`, `"a":0`, ","),
		around(t, "unknown, escaped names", message+`,@}`, `"\u0061\u0062":0`, ","),
		around(t, "unknown, short escaped names", message+`,@}`, `"\n":0`, ","),
		around(t, "unknown, a long escaped name", message+`,"@":0}`, `\u0061`, ""),
		around(t, "whitespace", message+"@}", " \n\t", ""),
		from("whole entries", `{"type":"asset","id":"gold","amount":1}`),
		from("tiny amounts", `{"type":"asset","id":"g","amount":1e-95}`),
		from("empty entries", `{}`),
		from("wrong types", `0`),
		from("wrong members", `{"type":0,"type":0,"id":0,"id":0,"amount":"","amount":0}`),
		to("wrong members", `{"type":0,"type":0,"id":0,"id":0,"amount":"","amount":0}`),
		to("tiny amounts of one token", `{"type":"ERC20","id":"t","amount":1e-95}`),
		to("amounts with exponents", `{"type":"ERC20","id":"t","amount":1e95}`),
		to("long amounts", `{"type":"ERC20","id":"t","amount":`+strings.Repeat("9", 99)+`}`),
		around(t, "an amount of 1 MiB", withoutIntent+`,"intent":{"method":"mint","type":"assemble",`+
			`"from":[{"type":"asset","id":"gold","amount":@}],"to":[{"type":"ERC20","id":"t","amount":1}]}}`, "9", ""),
		around(t, "intent, names", withoutIntent+`,"intent":{"method":"mint","type":"assemble",`+
			`"from":[{"type":"asset","id":"gold","amount":1}],"to":[{"type":"ERC20","id":"t","amount":1}],@}}`,
			`"fee_rate":1`, ","),
	}
}

// Each shape is read and checked in bounded time, whether it is accepted or rejected.
// This includes the step to the database, during which a row may be locked.
func TestParseTimesStayInTheirBounds(t *testing.T) {
	needQuietMachine(t)
	parseResult := func(body []byte) error {
		r, err := ramp.ParseResult(body)
		if err == nil {
			_, err = r.Intent.Effect(r.Outcome())
		}
		return err
	}
	store := must.Get(rampsql.New(rampsql.Config{DB: openSQLite(t), Dialect: rampsql.SQLite, Apply: applyNothing}))(t)
	parseValidate := func(body []byte) error {
		r, err := ramp.ParseValidate(body)
		if err != nil {
			return err
		}
		r.UUID = uuid.New() // so that each try opens an order
		_, err = store.Update(context.Background(), r.UUID, ramp.Accept(ramp.Session{ID: "hero-4821"}, r, time.Now()))
		return err
	}
	for _, test := range []struct {
		name   string
		shapes []shape
		parse  func([]byte) error
	}{{"result", resultShapes(t), parseResult}, {"validate", validateShapes(t), parseValidate}} {
		for _, s := range test.shapes {
			t.Run(test.name+"/"+s.name, func(t *testing.T) {
				body := s.body()
				best, err := time.Hour, error(nil)
				for tries := 0; tries < 10 && best > mostParseTime; tries++ { // the machine may be busy
					begun := time.Now()
					err = test.parse(body)
					best = min(best, time.Since(begun))
				}
				t.Logf("%v: %.100v", best, err)
				assert.LessOrEqual(t, best, mostParseTime)
			})
		}
	}
}

// The game holds every result until all have been read.
func TestConcurrentResultsStayInTheirHeap(t *testing.T) {
	if racedetector.On {
		t.Skip("the race detector needs memory too; run this without it")
	}
	for _, s := range resultShapes(t) {
		t.Run(s.name, func(t *testing.T) {
			game := &holdingGame{arrived: make(chan struct{}), release: make(chan struct{})}
			handler, send := newHandler(t, game), signed(t, ramp.PathResult, s.body())
			runtime.GC()
			peak := heapPeak()

			answers := make(chan int)
			for range concurrent {
				go func() {
					answer := httptest.NewRecorder()
					if request, err := send(); err == nil {
						handler.ServeHTTP(answer, request)
					} else {
						t.Error(err)
					}
					answers <- answer.Code
				}()
			}
			held := 0
			for range concurrent {
				select {
				case <-game.arrived:
					held++
				case code := <-answers:
					require.NotEqual(t, http.StatusUnauthorized, code, "the HMAC is right")
				}
			}
			close(game.release)
			for range held {
				require.Equal(t, http.StatusOK, <-answers)
			}

			heap := peak()
			t.Logf("%d MiB, %d accepted", heap>>20, held)
			assert.LessOrEqual(t, heap>>20, uint64(mostHeap)>>20, "MiB of heap")
		})
	}
}

// holdingGame keeps each result until it is released.
type holdingGame struct {
	approvingGame
	arrived, release chan struct{}
}

func (g *holdingGame) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	g.arrived <- struct{}{}
	<-g.release
	return g.approvingGame.Update(ctx, id, next) // which keeps the result until now
}

// heapPeak samples the size of the heap until it is asked for the peak.
func heapPeak() (peak func() uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}}
	most, asked := uint64(0), make(chan uint64)
	go func() {
		for {
			metrics.Read(samples)
			most = max(most, samples[0].Value.Uint64()+samples[1].Value.Uint64())
			select {
			case asked <- most:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() uint64 { return <-asked }
}
