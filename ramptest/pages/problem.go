package pages

import (
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
)

// problemOf returns the problem of a call that the game did not answer correctly. If the
// record has the exchange, it includes endpoint, status, body and likely cause.
func (s *site) problemOf(err error, id uuid.UUID) *problem {
	p := &problem{Said: say(err)}
	if code, _ := codeOf(err); code != control.CodeRejected && code != control.CodeGame {
		return p // there was no call
	}
	e, ok := s.last(frontend.CallsQuery{Pick: frontend.Wrong, UUID: id}, control.KindInitialize,
		control.KindValidate,
		control.KindResult)
	switch o := s.orderOf(id.String()); {
	case o != nil && o.Loss && o.TxHash == (common.Hash{}):
		p.Said, p.Loss = o.Said, true
	case s.down() != nil: // which the page says
		p.Said = "The order was not placed."
		if strings.Contains(err.Error(), "nothing was sent") {
			p.Said += " Nothing was sent, so nothing moved."
		} else if strings.Contains(err.Error(), "an earlier one about the order was") {
			p.Said += " An earlier call about it was sent, so the game may have moved assets."
		}
		return p
	case ok:
		p.Said, p.Tone = e.Sentence(), e.Tone
	}
	if ok {
		s.explain(p, &e)
		p.Links = []link{{hrefOf(&e), fmt.Sprintf("Open call %d", e.Number)}}
	}
	return p
}

func (s *site) explain(p *problem, e *control.Event) {
	p.Detail, p.Cause, p.Curl = ended(e), s.cause(e), s.curl(e)
	if e.Answer != nil && e.Answer.Body != "" && !strings.Contains(p.Cause, e.Answer.Short()) {
		p.Detail += "\n" + e.Answer.Short()
	}
}
