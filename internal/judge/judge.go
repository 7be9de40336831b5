package judge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
)

// Judge tries cases on a target. After [Judge.Ready], it is safe for concurrent use.
type Judge struct {
	target settings
	server
	opening map[string]Verdict // the verdicts of the abilities, by case ID
	crashed atomic.Bool        // a case that was tried alone stopped the server

	flight  sync.Map // the IDs of the cases that are being tried
	mu      sync.Mutex
	turn    sync.Cond // locks mu; signals that a case has ended
	running int       // the number of cases that are being tried
	alone   bool      // one of them must run alone: it restarts the server or sends what may crash it
	limited int       // how many cases in a row ended by a rate limit
}

// New returns a judge of the target. It makes no calls.
func New(target Config) (*Judge, error) {
	j := &Judge{target: settings{Config: target}, opening: make(map[string]Verdict)}
	if err := j.target.complete(); err != nil {
		return nil, err
	}
	j.turn.L = &j.mu
	j.known, j.dial = unknown(), new(net.Dialer).DialContext
	j.client = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return j.dial(ctx, network, address)
			},
			DisableKeepAlives: true, // a server may close an idle connection at the moment of the next call
		},
		CheckRedirect: gamecall.SameAddress,
	}
	return j, nil
}

// DialWith makes the judge call a server over connections of another kind than TCP. No
// server may close one while it is idle, so that calls can share them.
func (j *Judge) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	j.dial = dial
	j.client.Transport.(*http.Transport).DisableKeepAlives = false
}

// CallWith makes the judge call a server without connections, except for calls that are
// cut off.
func (j *Judge) CallWith(transport http.RoundTripper) { j.client.Transport = transport }

// Close closes idle connections.
func (j *Judge) Close() { j.client.CloseIdleConnections() }

// Err returns an error if the server stopped answering, so that nothing more can be
// tried. The error names the cases that were being tried at that time.
func (j *Judge) Err() error { return j.run.ended() }

func (j *Judge) trial(ctx context.Context, in Input) *trial {
	return &trial{ctx: ctx, settings: &j.target, client: j.client, server: &j.server, needs: in.needs,
		calls:   new(calls),
		secrets: slices.Clone(j.target.Secrets), items: make(map[string]string),
		wallets: make(map[string]string), ledger: new(ledger)}
}

// Try tries one case, each of its inputs with a fresh player. It waits while a case that
// must run alone is being tried. It returns the stored verdict of a case that
// [Judge.Ready] has tried.
func (j *Judge) Try(ctx context.Context, c Case) Verdict {
	var all []InputVerdict
	for _, in := range c.tries() {
		all = append(all, j.tryInput(ctx, c, in))
	}
	return j.sum(c, all)
}

// sum returns the verdict of a case from those of its inputs.
func (j *Judge) sum(c Case, all []InputVerdict) Verdict {
	if v, known := j.opening[c.ID]; known && len(c.Inputs) == 0 {
		return v
	}
	if v, found := j.layered(); found && c.ID == handlerID {
		return v
	}
	return c.verdict(all...)
}

// tryInput tries one input.
func (j *Judge) tryInput(ctx context.Context, c Case, in Input) InputVerdict {
	if !c.alone && !j.shared.Load() {
		// If it may share a player with others, this and all later cases run alone.
		if v := j.try(ctx, c, in, false); !j.shared.Load() || v.Outcome != Untried {
			return v
		}
	}
	return j.try(ctx, c, in, true)
}

// try tries an input, at the same time as others unless it must run alone.
func (j *Judge) try(ctx context.Context, c Case, in Input, alone bool) InputVerdict {
	j.enter(alone)
	defer j.leave()
	v := InputVerdict{Input: in, Level: in.Level}
	waits := j.waits(in.after...)
	switch opened, known := j.opening[c.ID]; {
	case known && (in.Name == "" || in.Name == opened.Case.Inputs[0].Name): // which the opening has tried
		v = opened.InputVerdict
	case j.Err() != nil:
		v.Outcome, v.Saw = Untried, untriedSince
	case j.waives(c, in):
		v.Outcome, v.Saw = Waived, "waived (-skip)"
	case waits != "":
		v.Outcome, v.Until = Unproven, waits
	default:
		v, _ = j.tried(ctx, c, in)
	}
	return v
}

const untriedSince = "the server stopped answering before this was tried"

// waives reports whether the target waives an input, by the ID of its case or by ID/NAME.
func (j *Judge) waives(c Case, in Input) bool {
	waive := j.target.Waive
	return waive != nil && (waive.MatchString(c.ID) || in.Name != "" && waive.MatchString(c.ID+"/"+in.Name))
}

// enter waits until a case may begin. It is a condition and not a [sync.RWMutex], because
// the virtual clock of package synctest stands still while a goroutine waits for a lock.
func (j *Judge) enter(alone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.alone || alone && j.running > 0 {
		j.turn.Wait()
	}
	j.running++
	j.alone = alone
}

func (j *Judge) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running--
	j.alone = false
	j.turn.Broadcast()
}

// tried tries an input and returns its verdict and finding. If an asset moves that is not
// part of the order, that counts only if it occurs twice, because the asset may move by
// itself.
func (j *Judge) tried(ctx context.Context, c Case, in Input) (InputVerdict, *finding) {
	v, found := j.attempt(ctx, c, in)
	if v.Until == handlerID && j.Err() == nil { // it may answer now
		v, found = j.attempt(ctx, c, in)
	}
	for range 2 { // it is known now how late a mint may take its assets
		if found != nil && found.late {
			v, found = j.attempt(ctx, c, in)
		}
	}
	if found == nil || !found.side {
		return v, found
	}
	off := found.off
	if v, found = j.attempt(ctx, c, in); found != nil && found.side && found.off.equal(off) {
		return v, found
	}
	for id := range off {
		j.driftsAlone(id)
	}
	return j.attempt(ctx, c, in)
}

func (j *Judge) attempt(ctx context.Context, c Case, in Input) (InputVerdict, *finding) {
	began := time.Now()
	j.flight.Store(c.ID, true)
	defer j.flight.Delete(c.ID)
	t := j.trial(ctx, in)
	t.name = strings.TrimSuffix(c.ID+"/"+in.Name, "/")
	defer j.release(t)
	t.begin()
	if t.err == nil {
		in.run(t)
	}
	var found *finding
	hidden := t.ledger.layered.Load()
	if (errors.As(t.err, &found) && found.unreachable() || hidden) && ctx.Err() == nil {
		j.lookFor(ctx, c, t.player, hidden)
	}
	if hidden && (j.Err() == nil || found == nil || !found.unreachable()) {
		t.err, found = errLayer, nil
	}
	j.limits(t.err)
	calls := t.calls.all()
	if j.Err() == nil {
		t.finish()
	}
	v := j.verdict(c, in, t.err)
	v.Calls, v.Took = calls, time.Since(began)
	if found != nil {
		if v.Call = found.call; v.Call == nil {
			v.Call = lastMove(calls)
		}
	}
	return v, found
}

// layered returns the verdict about what stands before the handler, if there is anything.
func (j *Judge) layered() (v Verdict, ok bool) {
	f := j.layers.finding()
	if f == nil {
		return v, false
	}
	c := handlerCase()
	c.Subject = "http"
	return c.verdict(InputVerdict{Level: c.Level, Outcome: Failed, Saw: f.saw, Want: f.want,
		Note: f.note}), true
}

// whyLayered adds what stands before the handler to an error of the opening.
func (j *Judge) whyLayered(err error) error {
	if f := j.layers.finding(); f != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(f.saw+"\n"+f.note))
	}
	return err
}

// limits ends the run if a rate limit ends everything that is tried.
func (j *Judge) limits(err error) {
	const most = 3
	j.mu.Lock()
	defer j.mu.Unlock()
	if !errors.Is(err, errBusy) {
		j.limited = 0
	} else if j.limited++; j.limited == most {
		j.run.stop(fmt.Errorf("%w; %d cases in a row ended by it, so the remaining ones were not tried: "+
			"raise the server's limit for the judge", errBusy, most))
	}
}

// verdict returns the verdict of an attempt at an input that ended with err.
func (j *Judge) verdict(c Case, in Input, err error) InputVerdict {
	v := InputVerdict{Input: in, Level: in.Level, Outcome: Passed}
	var found *finding
	var why skip
	var lacks unasked
	switch {
	case err == nil:
		return v
	case errors.As(err, &why):
		v.Outcome, v.Saw = Skipped, string(why)
		return v
	case errors.As(err, &lacks) && in.Level == Must:
		v.Outcome, v.Saw, v.Set = Unasked, lacks.why, lacks.set
		return v
	case errors.As(err, &lacks):
		v.Outcome, v.Saw = Skipped, lacks.why
		return v
	case errors.Is(err, errLayer):
		v.Outcome, v.Until = Unproven, handlerID
		return v
	case !errors.As(err, &found):
		v.Outcome, v.Saw = Untried, err.Error()
		return v
	}
	v.Saw, v.Want, v.Note, v.Outcome = found.saw, found.want, found.note, Failed
	switch {
	case found.unreachable() && j.left(c):
		v.Outcome, v.Saw, v.Want = Untried,
			"the server stopped answering while this case and others were tried", ""
	case found.unreachable() && j.Err() != nil:
		v.Level = Must // it crashed the server
		v.Note = "the server answered nothing after this call: it crashed, or it hangs; its log says why"
		j.crashed.Store(true)
	case found.grave && !in.mild:
		v.Level = Must // it gives something away
	case in.Level == Should && !j.target.Strict:
		v.Outcome = Noted
	}
	if v.Level == Must && v.Outcome == Failed {
		v.Harm = found.harm()
	}
	return v
}

// left reports whether the server stopped answering while other cases than c were being
// tried, so that it is unknown which of them crashed it.
func (j *Judge) left(c Case) bool {
	var gone *goneError
	return errors.As(j.Err(), &gone) && !slices.Equal(gone.flight, []string{c.ID})
}

// goneError means that the server stopped answering.
type goneError struct{ flight []string }

func (e *goneError) Error() string {
	return "the server stopped answering during " + strings.Join(e.flight, ", ") +
		"; the remaining cases were not tried"
}

// suspects reports whether a case was being tried when the server stopped answering.
func (e *goneError) suspects(c Case) bool { return e != nil && slices.Contains(e.flight, c.ID) }

// revive restarts a server that stopped answering, and reports whether it answers again.
func (j *Judge) revive(ctx context.Context) bool {
	gone := j.run.resume()
	err := j.target.Restart(ctx)
	for wait := 50 * time.Millisecond; err == nil && wait < 15*time.Second; wait *= 2 {
		t := j.trial(ctx, Input{})
		player := t.newPlayer()
		j.release(t)
		if t.err == nil && j.answers(ctx, player) {
			j.late.Clear()
			return true
		}
		if !sleep(ctx, wait) {
			break
		}
	}
	j.run.stop(gone)
	return false
}

// lookFor checks whether a server that did not answer a case about a player still answers.
// A supervisor has a few seconds to restart it, or fewer if Config.Timeout is short. A
// layer before it has longer, because a circuit breaker stays open for some seconds.
func (j *Judge) lookFor(ctx context.Context, c Case, player ramp.Session, layer bool) {
	if j.Err() != nil {
		return
	}
	most := min(2*time.Second, j.target.Timeout/5)
	if layer {
		most = j.target.Timeout
	}
	for wait, waited := 50*time.Millisecond, time.Duration(0); waited < most; waited += wait {
		if j.answers(ctx, player) || !sleep(ctx, wait) {
			return
		}
		if !layer { // it may be open most of the time
			wait *= 2
		}
	}
	gone := &goneError{[]string{c.ID}}
	j.flight.Range(func(id, _ any) bool {
		gone.flight = append(gone.flight, id.(string))
		return true
	})
	slices.Sort(gone.flight)
	gone.flight = slices.Compact(gone.flight)
	j.run.stop(gone)
}

// answers reports whether the server answers at all, even with a rejection. The call is
// authentic, because a server whose database hangs may still reject others.
func (j *Judge) answers(ctx context.Context, player ramp.Session) bool {
	ctx, cancel := context.WithTimeout(ctx, min(j.target.Timeout, 3*time.Second))
	defer cancel()
	t := j.trial(ctx, Input{})
	a := t.attempt(ctx, call{method: http.MethodGet, path: j.target.AssetsPath,
		header: gamecall.Header(player), alone: true})
	return a.err == nil && !isUnavailable(a.status)
}
