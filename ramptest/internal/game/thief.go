package game

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
)

// maxVictims bounds how many sessions are asked for again. A mistake is the same for every session.
const maxVictims = 100

// nobodysToken and nobodysSession are what nobody has issued.
const nobodysToken, nobodysSession = "nobody-has-this-token", "nobody-has-this-session"

const meant = " (if that is meant, set NoThief of ramptest.Config, or -no-thief of ramp emulate)"

// theft is an assets call with half of a session.
type theft struct {
	session ramp.Session
	owned   bool   // its token is the victim's own, whose player a server may list
	found   string // what it means if the game lists something for it
	mixed   string // the same if it lists the token's own player; "" is found
}

// AskLikeAThief asks the game for assets like a thief, for each session that it has accepted and that was
// not asked for yet. Neither the record nor the books see these calls.
func (s *Game) AskLikeAThief(ctx context.Context) {
	if s.config.NoThief || !s.config.Audited {
		return
	}
	guests := s.readings.accepted()
	for _, victim := range guests {
		if err := s.rob(ctx, victim, guests, false); err != nil && RejectionOf(err) == nil {
			return // there is no game now
		}
	}
}

// Thefts asks once more, and for up to maxVictims sessions again. It returns what the game gave away, each
// kind once, and what could never be asked, in sentences.
func (s *Game) Thefts(ctx context.Context) []string {
	if s.config.NoThief || !s.config.Audited {
		return nil
	}
	guests := s.readings.accepted()
	var refused []guest
	var away error
	silent, again := 0, 0
	for _, victim := range guests {
		if victim.asked {
			if again++; again > maxVictims || away != nil { // a mistake is the same for every session
				continue
			}
		}
		err := away // if nobody answers, nobody is asked twice
		if err == nil {
			err = s.rob(ctx, victim, guests, true)
		}
		switch r := RejectionOf(err); {
		case err == nil, victim.asked:
		case r != nil && r.Status < http.StatusInternalServerError:
			refused = append(refused, victim)
		default:
			away, silent = err, silent+1
		}
	}
	asked := s.readings.accepted()
	refused = slices.DeleteFunc(refused, func(old guest) bool { // the player has a newer session
		return old.playerID != "" && slices.ContainsFunc(asked, func(g guest) bool {
			return g.asked && g.playerID == old.playerID && g.server == old.server
		})
	})
	s.thief.mu.Lock()
	found := slices.Clone(s.thief.found)
	if len(found) == 0 && s.thief.doubt != "" {
		found = append(found, s.thief.doubt)
	}
	s.thief.mu.Unlock()
	if silent > 0 {
		found = append(found, fmt.Sprintf("ramptest: %d of %d sessions were not asked for like a thief: %s. "+
			"The game must run until then: call service.Advance while it does, or close it by "+
			"t.Cleanup before ramptest.Start, and not by defer%s", silent, len(guests),
			redact.New(s.readings.tokens()...).Text(text.Of(away)), meant))
	}
	if len(refused) > 0 {
		var sessions []string
		for _, g := range refused {
			sessions = append(sessions, fmt.Sprintf("%q", g.session.ID))
		}
		found = append(found, "ramptest: not asked for like a thief, because the game has accepted these "+
			"sessions and now rejects them: "+strings.Join(sessions, ", ")+
			". If their tokens have not expired, one call has used them up: a token must last for all calls "+
			"of a page. Call service.Advance while they are valid"+meant)
	}
	return found
}

// rob asks with half of a session, unless it was asked before.
func (s *Game) rob(ctx context.Context, victim guest, guests []guest, again bool) error {
	if victim.asked && !again {
		return nil
	}
	calls := s.theftsOf(victim, guests)
	gave, admitted, err := s.steal(ctx, calls)
	s.readings.robbed(victim.session.ID, err == nil)
	if err != nil {
		return err
	}
	s.thief.mu.Lock()
	defer s.thief.mu.Unlock()
	for kind, text := range gave {
		switch {
		case text != "" && !s.thief.told[kind]:
			if s.thief.told == nil {
				s.thief.told = make(map[int]bool)
			}
			s.thief.told[kind] = true
			s.thief.found = append(s.thief.found,
				"ramptest: "+redact.New(victim.session.Token.Reveal()).Text(text)+meant)
		case text == "" && admitted[kind] && s.thief.doubt == "":
			s.thief.doubt = fmt.Sprintf("ramptest: Authenticate accepts session %q with a token that is not "+
				"its own, and Assets rejects it. A validate call asks only Authenticate and Policy, so "+
				"Authenticate must check that the token belongs to the session (5.1)",
				calls[kind].session.ID) + meant
		}
	}
	return nil
}

// WasRobbed reports whether a session was asked for like a thief.
func (s *Game) WasRobbed(session ramp.Session) bool { return s.readings.wasRobbed(session.ID) }

// theftsOf returns the calls with half of a session. The last one has both halves.
func (s *Game) theftsOf(victim guest, guests []guest) []theft {
	own, token := victim.session.ID, victim.session.Token
	all := []theft{
		{session: ramp.Session{ID: own, Token: ramp.NewAccessToken(nobodysToken)},
			found: fmt.Sprintf("the game lists the assets of session %q for a token that nobody has issued: "+
				"whoever knows the session can spend what it owns. Authenticate must check the "+
				"token (5.1)", own)},
		{session: ramp.Session{ID: nobodysSession, Token: token}, owned: true,
			found: fmt.Sprintf(
				"the game accepts the token of session %q for a session that nobody has issued: "+
					"Authenticate must check that the token belongs to the session (5.1)", own)},
		{session: ramp.Session{Token: token}, owned: true},
		{session: ramp.Session{Token: token}, owned: true},
		{session: victim.session},
	}
	if other := otherPlayer(victim, guests); other != "" {
		all[2].session.ID = other
		all[2].found = fmt.Sprintf(
			"the game accepts the token of session %q for session %q of another player: "+
				"one player can spend what the other owns. Authenticate must check that the token belongs "+
				"to the session (5.1)",
			own, other)
		all[2].mixed = fmt.Sprintf(
			"the game accepts the token of session %q for session %q of another player, and lists "+
				"what the token's player owns: an Apply sees only the session, so the other player pays. "+
				"Authenticate must check that the token belongs to the session (5.1)", own, other)
	}
	isGuest := func(g guest) bool { return g.session.ID == gamecall.OtherCase(own) }
	if swapped := gamecall.OtherCase(own); swapped != own && !slices.ContainsFunc(guests, isGuest) {
		all[3].session.ID = swapped
		all[3].found = fmt.Sprintf(
			"the game accepts session %q for session %q: an order is stored under the first, "+
				"and limits and SessionOrders look for the second. Compare sessions exactly; "+
				"databases such as MySQL ignore case by default", swapped, own)
	}
	return all
}

// steal makes the calls. It returns what the game gave away, one text for each call or "", and which
// of them a ramp.Handler has admitted, or the error of the last call: then nobody is accused.
func (s *Game) steal(ctx context.Context, calls []theft) (gave []string, admitted []bool, err error) {
	gave, admitted = make([]string, len(calls)-1), make([]bool, len(calls)-1)
	players := make([]*ramp.Player, len(gave))
	var unanswered error
	for i, c := range calls[:len(gave)] {
		if c.session.ID == "" {
			continue
		}
		var v visit
		if v, unanswered = s.visit(ctx, c.session); unanswered != nil {
			break
		}
		players[i], admitted[i] = v.player, v.admitted
	}
	owner, err := s.visit(ctx, calls[len(gave)].session)
	switch {
	case cmp.Or(err, owner.err) != nil:
		return nil, nil, cmp.Or(err, owner.err)
	case unanswered != nil: // there is a game
		return nil, nil, fmt.Errorf("half of a session gets no answer, and a whole one does: %w", unanswered)
	}
	for i, c := range calls[:len(gave)] {
		switch own := players[i] != nil && c.owned && s.isSame(players[i], owner.player); {
		case players[i] == nil, own && !admitted[i]:
		case own && c.mixed != "":
			gave[i] = c.mixed
		default:
			gave[i] = c.found
		}
	}
	return gave, admitted, nil
}

// visit is what the game has answered to a caller of whom there is no record.
type visit struct {
	player   *ramp.Player // nil if the answer lists no assets
	err      error        // why it does not
	admitted bool         // a ramp.Handler has accepted the session
}

// visit asks for assets without a record. The error says why there was no answer.
func (s *Game) visit(ctx context.Context, session ramp.Session) (v visit, err error) {
	ctx, watched := rollback.WithVisit(ctx)
	a, _, err := s.do(ctx, Call{Kind: control.KindAssets, id: uuid.Nil,
		method: http.MethodGet, path: s.config.AssetsPath, session: session})
	if err == nil {
		v.player, v.err = checkAssets(a)
	}
	v.admitted = watched.Admitted()
	return v, err
}

// isSame reports whether two answers are about one player.
func (s *Game) isSame(x, y *ramp.Player) bool {
	if x.PlayerID != "" || y.PlayerID != "" {
		return x.PlayerID == y.PlayerID && x.Server == y.Server
	}
	still := func(p *ramp.Player) []ramp.Asset {
		moves := func(a ramp.Asset) bool { return slices.Contains(s.config.Regenerating, a.ID) }
		return slices.DeleteFunc(slices.Clone(p.Assets), moves)
	}
	return slices.EqualFunc(still(x), still(y), func(a, b ramp.Asset) bool {
		return a.ID == b.ID && a.Balance.Cmp(b.Balance) == 0
	})
}

// otherPlayer returns the session of another player than that of a guest, with another token, or "".
// It is the next one, so that all are asked for.
func otherPlayer(of guest, guests []guest) string {
	at := slices.IndexFunc(guests, func(g guest) bool { return g.session.ID == of.session.ID })
	for _, g := range slices.Concat(guests[at+1:], guests[:at]) {
		differs := g.playerID != of.playerID || g.server != of.server
		if of.playerID != "" && g.playerID != "" && differs && !g.session.Token.Equal(of.session.Token) {
			return g.session.ID
		}
	}
	return ""
}
