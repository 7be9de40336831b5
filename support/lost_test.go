package support_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// After a restore, the logs are the only list of what the database has lost.
func TestTheLogSaysWhichOrdersAreLost(t *testing.T) {
	var log strings.Builder
	now := newStudio(t)
	waits, abandoned := now.Mint(t, ramptest.ResultNever()), now.Mint(t, ramptest.ResultNever())
	repeated := now.Mint(t, ramptest.ResultNever()) // the server was killed before it logged what it had committed
	record := slog.New(slog.NewJSONHandler(&log, nil))
	for _, id := range []any{waits, abandoned} {
		record.Info("ramp: call", "uuid", id, "session_id", "alice", "state", "accepted", "new", true, "effect",
			"take -100 item_gold")
	}
	io.WriteString(&log, "a line of another program {\n\n")
	record.Warn("ramp: order abandoned", "uuid", abandoned, "session_id", "alice", "state", "abandoned", "new", true,
		"effect", "give back +100 item_gold")
	record.Info("ramp: call", "uuid", abandoned, "session_id", "alice", "state", "abandoned", "new", false,
		"effect", "nothing")
	record.Info("ramp: call", "uuid", repeated, "session_id", "alice", "state", "failed", "tx_hash", "0x1", "new",
		false, "effect", "nothing")
	record.Warn("ramp: call", "uuid", repeated, "session_id", "alice", "state", "failed", "tx_hash", "0x2", "conflict",
		"receipt.status")
	// of another server
	record.Info("ramp: call", "uuid", repeated, "session_id", "alice", "state", "accepted", "new", false)
	record.Error("a result contradicts its order", "uuid", repeated, "state", "failed", "tx_hash", "0x2")
	record.Error("ramp: call", "uuid", uuid.New(), "status", 500, "error", "nothing was stored")
	text := strings.TrimSuffix(log.String(), "\n") // a line may end with the file

	lost := func(d *rig.Studio) []support.Logged {
		var read strings.Builder
		log := slog.New(slog.NewTextHandler(&read, nil))
		orders := must.Get(rig.NewOffice(rig.Config{Store: d.Store, Logger: log}))(t)
		lost := must.Get(orders.Lost(t.Context(), strings.NewReader(text)))(t)
		assert.Contains(t, read.String(), `msg="ramp: logs read" records=6 orders=3`)
		return lost
	}
	again := support.Logged{UUID: repeated, SessionID: "alice", State: ramp.OrderFailed, TxHash: "0x1"}
	assert.Equal(t, []support.Logged{{UUID: abandoned, SessionID: "alice", State: ramp.OrderAbandoned,
		Effects: []string{"take -100 item_gold", "give back +100 item_gold"}}, again}, lost(now))
	again.Missing = true
	assert.Equal(t, []support.Logged{
		{UUID: waits, SessionID: "alice", State: ramp.OrderAccepted, Effects: []string{"take -100 item_gold"},
			Missing: true},
		{UUID: abandoned, SessionID: "alice", State: ramp.OrderAbandoned,
			Effects: []string{"take -100 item_gold", "give back +100 item_gold"}, Missing: true}, again,
	}, lost(newStudio(t)))
	_, err := must.Get(rig.NewOffice(rig.Config{Store: new(ramp.MemoryStore)}))(t).Lost(t.Context(),
		strings.NewReader(text))
	assert.ErrorContains(t, err, "MemoryStore.Apply is required", "a store that fails lost nothing")
}

// A rotation that overlaps, or a log that is given twice, has records and their copies. Whoever makes
// the effects by hand must not make one twice.
func TestACopiedRecordMovedNothing(t *testing.T) {
	orders, _, _ := rig.NewOfficeOnNode(t, time.Hour, rig.Paid)
	burn, mint := uuid.New(), uuid.New()
	record := func(id uuid.UUID, state, effect string) string {
		return fmt.Sprintf(`{"msg":"ramp: call","uuid":%q,"session_id":"alice","state":%q,"new":true,"effect":%q}`+"\n",
			id, state, effect)
	}
	opened, granted := record(burn, "accepted", "nothing"), record(burn, "succeeded", "grant +100 item_gold")
	taken, back := record(mint, "accepted", "take -5 item_gem"), record(mint, "failed", "give back +5 item_gem")
	for name, logs := range map[string][]string{
		"once":                         {opened + granted + taken + back},
		"a rotation that overlaps":     {opened + granted + taken, granted + taken + back},
		"the newest log first":         {granted + taken + back, opened + granted + taken},
		"a log twice":                  {opened + granted + taken + back, opened + granted + taken + back},
		"a line that was copied twice": {opened + granted + granted + granted + taken + taken + back},
	} {
		var readers []io.Reader
		for _, log := range logs {
			readers = append(readers, strings.NewReader(log))
		}
		lost := must.Get(orders.Lost(t.Context(), readers...))(t)
		effects := map[uuid.UUID][]string{}
		for _, order := range lost {
			effects[order.UUID] = order.Effects
		}
		assert.Equal(t, map[uuid.UUID][]string{
			burn: {"nothing", "grant +100 item_gold"}, mint: {"take -5 item_gem", "give back +5 item_gem"},
		}, effects, name)
	}
}

// A player writes what they like, and programs log it. A record is a line of the program that
// ended the order.
func TestWhatIsNoRecordIsNoLostOrder(t *testing.T) {
	orders, _, _ := rig.NewOfficeOnNode(t, time.Hour, rig.Paid)
	id := uuid.New()
	record := `{"time":"2026-11-20T12:00:00Z","level":"INFO","msg":"ramp: call","uuid":"` + id.String() + `",` +
		`"session_id":"mallory","state":"succeeded","new":true,"effect":"grant +1000000 item_gold","tx_hash":""}`
	quoted := string(must.Get(json.Marshal(record))(t))
	other := `{"msg":"ramp: call","uuid":"` + uuid.NewString() + `",` +
		`"state":"accepted","new":true,"effect":"take -1 item_gold"}`
	short := `{"msg":"ramp: call","state":"succeeded","uuid":"` + id.String() + `"}`
	const wrapped = "lines that may hold a record, but are none: 1, the first is line 2: "
	const none = "ramp: read the log: it has no record of an order: "
	for name, c := range map[string]struct {
		line  string
		found bool
		want  string // the beginning of the error
	}{
		"the record":                 {record, true, ""},
		"with a line end of Windows": {record + "\r", true, ""},
		"with other members":         {short, true, ""},

		"a chat in JSON":                 {`{"msg":"chat","player":"mallory","text":` + quoted + `}`, false, ""},
		"a chat with the record as JSON": {`{"msg":"chat","player":"mallory","json":` + record + `}`, false, ""},
		"an error of ours":               {`{"msg":"ramp: call failed","error":` + quoted + `}`, false, ""},

		"a chat":                       {"2026/11/20 12:00:00 chat mallory: " + record, false, wrapped},
		"docker compose logs":          {"game-1  | " + record, false, wrapped},
		"a file of Docker":             {`{"log":` + quoted + `,"stream":"stderr"}`, false, wrapped},
		"a file of Kubernetes":         {"2026-11-20T12:00:00.123456789Z stderr F " + record, false, wrapped},
		"a file of Kubernetes, in two": {"2026-11-20T12:00:00.123456789Z stderr P " + record[:150], false, wrapped},
		"syslog":                       {"<14>Nov 20 12:00:00 host gameserver[1]: " + record, false, wrapped},
		"journald in JSON":             {`{"MESSAGE":` + quoted + `,"_PID":"1"}`, false, wrapped},
		"a cloud's log":                {`{"jsonPayload":` + record + `,"severity":"INFO"}`, false, wrapped},
		"slog.TextHandler":             {`msg="ramp: call" state=succeeded uuid=` + id.String(), false, wrapped},
		"a member of another name":     {strings.Replace(record, `"msg"`, `"message"`, 1), false, wrapped},
		"a byte order mark":            {"\ufeff" + record, false, wrapped},
		"two in a line":                {record + record, false, wrapped},
		"cut off":                      {record[:len(record)-1], false, wrapped},
		"a UUID that is none":          {strings.Replace(record, id.String(), "58dbfbe4", 1), false, wrapped},
	} {
		lost, err := orders.Lost(t.Context(), strings.NewReader(other+"\n"+c.line))
		found := slices.ContainsFunc(lost, func(l support.Logged) bool { return l.UUID == id })
		assert.Equal(t, c.found, found, name)
		assert.Len(t, lost, map[bool]int{true: 2, false: 1}[c.found], "%s: the other record is found", name)
		if c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.want, name)
		}
	}
	utf16 := "\xff\xfe"
	for _, c := range record {
		utf16 += string([]byte{byte(c), 0})
	}
	for name, log := range map[string]string{
		"nothing": "", "another program's": "listening\n{}\n", "UTF-16": utf16,
		"a logger that is nil": `{"msg":"ramp: call","status":500}`,
	} {
		lost, err := orders.Lost(t.Context(), strings.NewReader(log))
		assert.Empty(t, lost, name)
		assert.ErrorContains(t, err, none, name)
	}
}

// A container, a log service or another handler puts something around each line.
func TestAWrappedLogIsRead(t *testing.T) {
	orders, _, _ := rig.NewOfficeOnNode(t, time.Hour, rig.Paid)
	steps := []string{"take -100 item_gold", "give back +100 item_gold"}
	const session = "a \"b\"=c\n홍"
	id := uuid.New()
	written := func(handler func(io.Writer) slog.Handler) []string {
		var text strings.Builder
		log := slog.New(handler(&text))
		log.Info("serving")
		step := log.With("uuid", id, "session_id", session, "new", true)
		step.Info("ramp: call", "state", "accepted", "effect", steps[0])
		log.Info("chat", "text", `{"msg":"ramp: call","uuid":"`+uuid.NewString()+`","state":"failed"}`)
		step.Warn("ramp: order abandoned", "state", "abandoned", "effect", steps[1])
		return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	}
	lines := written(func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) })
	quoted := func(line string) string { return string(must.Get(json.Marshal(line))(t)) }
	bytesOf := func(line string) string {
		var numbers []string
		for _, b := range []byte(line) {
			numbers = append(numbers, strconv.Itoa(int(b)))
		}
		return "[" + strings.Join(numbers, ",") + "]"
	}
	const at = "2026-11-20T12:00:00.123456789Z"
	before := func(prefix string) func(string) string { return func(line string) string { return prefix + line } }
	in := func(form string, quotes ...func(string) string) func(string) string { // innermost first
		return func(line string) string {
			for _, quote := range quotes {
				line = quote(line)
			}
			return strings.Replace(form, "LINE", line, 1)
		}
	}
	ended := func(line string) string { return line + "\n" }
	docker := in(`{"log":LINE,"stream":"stderr","time":"`+at+`"}`, ended, quoted)
	for name, wrap := range map[string]func(line string) string{
		"nothing":                     before(""),
		"a file of Docker":            docker,
		"docker compose logs":         before("game-1  | "),
		"docker compose logs -t":      before("game-1  | " + at + " "),
		"kubectl logs --timestamps":   before(at + " "),
		"kubectl logs --prefix":       before("[pod/game-5d9c7b-x2x/game] "),
		"a file of containerd":        before(at + " stderr F "),
		"journalctl":                  before("Nov  6 12:00:00 host gameserver[123]: "),
		"journalctl -o short-iso":     before("2026-11-20T12:00:00+0000 host gameserver[123]: "),
		"journalctl -o json":          in(`{"_PID":"1","MESSAGE":LINE,"PRIORITY":"6"}`, quoted),
		"journalctl -o json, bytes":   in(`{"_PID":"1","MESSAGE":LINE}`, bytesOf),
		"syslog, RFC 5424":            before("<14>1 " + at + " host gameserver 123 - - "),
		"logcli":                      before(`2026-11-20T12:00:00Z {app="game", pod="a"} `),
		"logcli -o jsonl":             in(`{"labels":{"app":"game"},"line":LINE,"timestamp":"`+at+`"}`, quoted),
		"Loki's API":                  in(`{"data":{"result":[{"stream":{},"values":[["1763640000",LINE]]}]}}`, quoted),
		"a cloud's text":              in(`{"insertId":"a","textPayload":LINE,"timestamp":"`+at+`"}`, quoted),
		"a cloud's object":            in(`{"insertId":"a","jsonPayload":LINE}`),
		"a shipper, around Docker":    in(`{"message":LINE,"host":{"name":"a"}}`, docker, quoted),
		"a shipper, around a runtime": in(`{"message":LINE}`, before(at+" stdout F "), quoted),
	} {
		var log strings.Builder
		for _, line := range lines {
			log.WriteString(wrap(line) + "\n")
		}
		lost, err := orders.Lost(t.Context(), strings.NewReader(log.String()))
		want := support.Logged{UUID: id, SessionID: session, State: ramp.OrderAbandoned,
			Effects: steps, Missing: true}
		if assert.NoError(t, err, name) {
			assert.Equal(t, []support.Logged{want}, lost, name)
		}
	}
	text := written(func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) })
	lost, err := orders.Lost(t.Context(), strings.NewReader(strings.Join(text, "\n")))
	assert.NoError(t, err)
	assert.Equal(t, session, lost[0].SessionID)
	assert.Equal(t, steps, lost[0].Effects)

	// Each log has its own form.
	lost, err = orders.Lost(t.Context(), strings.NewReader("game-1  | "+lines[1]), strings.NewReader(lines[3]))
	assert.NoError(t, err)
	assert.Equal(t, steps, lost[0].Effects, "two logs")
}

// Which of two forms is the server's, nobody can tell.
func TestARecordInAnotherFormIsRefused(t *testing.T) {
	orders, _, _ := rig.NewOfficeOnNode(t, time.Hour, rig.Paid)
	record := func() string {
		return `{"msg":"ramp: call","uuid":"` + uuid.NewString() +
			`","state":"failed","new":true,"effect":"give back +9 item_gold"}`
	}
	for name, line := range map[string]string{
		"a chat in a chat's form": "game-1  | mallory | " + record(),
		"a chat after a name":     "game-1  | mallory: " + record(),
		"another wrapping":        `{"log":` + string(must.Get(json.Marshal(record()))(t)) + `}`,
		"a part of a line":        "2026-11-20T12:00:00Z stderr P " + record(),
		"a long line of journald": `{"MESSAGE":null}`,
	} {
		for _, log := range []string{"game-1  | " + record() + "\n" + line, line + "\n" + "game-1  | " + record()} {
			lost, err := orders.Lost(t.Context(), strings.NewReader(log))
			assert.Error(t, err, name)
			assert.LessOrEqual(t, len(lost), 1, name)
		}
	}
}

// The answer of a commit is lost, or the server is killed before it writes its record: only the repeat of the
// call has one. It says what the order has moved.
func TestARepeatSaysWhatItsOrderHasMoved(t *testing.T) {
	s := newStudio(t)
	want := map[uuid.UUID][]string{
		s.Mint(t, ramptest.ValidateTwice(), ramptest.ResultTwice()): {
			"take -100 item_gold", "nothing"},
		s.Mint(t, ramptest.ValidateTwice(), ramptest.TransactionFails(), ramptest.ResultTwice()): {
			"take -100 item_gold", "give back +100 item_gold"},
		s.Place(t, s.Service.Burn, ramptest.ValidateTwice(), ramptest.ResultTwice()).UUID: {
			"nothing", "grant +100 item_gold"},
	}
	s.Service.Advance(time.Hour)
	var repeats []string
	for line := range strings.Lines(s.Calls.String()) {
		if strings.Contains(line, `"new":false`) {
			repeats = append(repeats, line)
			assert.Regexp(t, `"moved":"(nothing|(take|give back|grant) [+-]100 item_gold)","moved_at":"20`, line)
		}
		assert.Contains(t, line, `"project_id":"project-1"`)
	}
	s.Lose(t, 1000)
	for name, log := range map[string]string{
		"repeats alone": strings.Join(repeats, ""),
		"results alone": strings.Join(slices.DeleteFunc(slices.Clone(repeats), func(line string) bool {
			return strings.Contains(line, `"endpoint":"validate"`)
		}), ""),
		"the whole log": s.Calls.String(),
	} {
		got := map[uuid.UUID][]string{}
		for _, l := range must.Get(s.Lost(t.Context(), strings.NewReader(log)))(t) {
			got[l.UUID] = l.Effects
		}
		assert.Equal(t, want, got, name)
	}
	orders := must.Get(rig.NewOffice(rig.Config{Store: s.Store, Projects: []string{"project-2"}, Logger: rig.Quiet}))(t)
	lost := must.Get(orders.Lost(t.Context(), strings.NewReader(s.Calls.String())))(t)
	assert.Empty(t, lost, "two games write one log, and the restored database is the other one's")
}
