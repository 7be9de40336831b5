package judge_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// signs is a server that signs in another way.
func signs(sign func(s *studio, asked message, right string) string) mutant {
	return answers(ramp.PathValidate, func(s *studio, _ *http.Request, asked message, body string) string {
		var answer ramp.Response[ramp.Approval]
		if json.Unmarshal([]byte(body), &answer) != nil || answer.Data == nil {
			return body
		}
		right := answer.Data.ValidatorSig.String()
		return strings.Replace(body, right, sign(s, asked, right), 1)
	})
}

// signature signs a digest as the studio does.
func (s *studio) signature(d []byte) string {
	var digest ramp.Digest
	copy(digest[:], d)
	sig, err := s.signer.Sign(s.ctx, digest)
	if err != nil {
		return err.Error()
	}
	return sig.String()
}

// echoes is a server that returns another user_sig.
func echoes(change func(string) string) mutant {
	return answers(ramp.PathValidate, func(_ *studio, _ *http.Request, asked message, body string) string {
		return strings.Replace(body, `"userSig":"`+asked.text("user_sig"),
			`"userSig":"`+change(asked.text("user_sig")), 1)
	})
}

// leaks is a server that shows the signature of an order that the player cannot pay for.
func leaks(show func(header http.Header, body, sig string) string) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		answer := answerOf(next, r)
		text := answer.Body.String()
		if strings.Contains(text, "INVALID_BALANCE") {
			text = show(w.Header(), text, s.signature(common.FromHex(parse(body).text("digest"))))
		}
		reply(w, answer.Code, text)
	})
}

func TestASignatureIsFoundWhereverARejectionHasIt(t *testing.T) {
	t.Parallel()
	encoded := func(e *base64.Encoding, sig string) string { return e.EncodeToString(common.FromHex(sig)) }
	for name, show := range map[string]func(header http.Header, body, sig string) string{
		"text": func(_ http.Header, body, sig string) string {
			return strings.Replace(body, "INVALID_BALANCE", "too little for "+sig[2:], 1)
		},
		"data": func(_ http.Header, body, sig string) string {
			return strings.Replace(body, `"data":null`, `"data":{"userSig":"0x","validatorSig":"`+sig+`"}`, 1)
		},
		"base64": func(_ http.Header, body, sig string) string {
			return strings.Replace(body, "null", `["`+encoded(base64.StdEncoding, sig)+`"]`, 1)
		},
		"header": func(header http.Header, body, sig string) string {
			header.Set("X-Signature", encoded(base64.RawURLEncoding, sig))
			return body
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, leaks(show), func(t *testing.T, s *studio) {
				j := newJudge(t, s)
				v := j.Try(t.Context(), caseOf(t, "sign-rejected"))
				assert.Equal(t, judge.Failed, v.Outcome, v.String())
				assert.Contains(t, v.Saw, "the validator's signature in a rejection, in balance")
			})
		})
	}
}

func signatureMutants() map[string]mutant {
	m := make(map[string]mutant)
	for _, id := range []string{"missing", "null", "empty", "0x", "31-bytes", "33-bytes", "64-bytes", "odd", "not-hex",
		"no-prefix", "number"} {
		m["digest-wrong/"+id] = approves(bad("digest"))
	}
	digest := func(m message) []byte { return common.FromHex(m.text("digest")) }
	prefixed := signs(func(s *studio, asked message, _ string) string {
		return s.signature(crypto.Keccak256([]byte("\x19Ethereum Signed Message:\n32"), digest(asked)))
	})
	for id, mutant := range map[string]mutant{
		"sign-unchanged/ones":  prefixed,
		"sign-unchanged/known": prefixed,
		"sign-unchanged/leading-zeros": signs(func(s *studio, asked message, _ string) string {
			return s.signature(new(big.Int).SetBytes(digest(asked)).Bytes()) // moved to the front
		}),
		"sign-unchanged/trailing-zeros": signs(func(s *studio, asked message, _ string) string {
			return s.signature(common.LeftPadBytes(bytes.TrimRight(digest(asked), "\x00"), 32))
		}),
		"sign-form": signs(func(_ *studio, _ message, right string) string { return right[:130] }),
		"sign-nonce": signs(func(s *studio, asked message, _ string) string {
			return nonced(digest(asked), big.NewInt(0x5eed))
		}),
		"sign-every": signs(func(s *studio, asked message, right string) string { // of any amount but the plain one
			if n := amountText(asked, "intent.from.0.amount"); n == "2" || n == "400" {
				return right
			}
			return s.signature(crypto.Keccak256(digest(asked)))
		}),
		"sign-rejected": leaks(func(_ http.Header, body, sig string) string {
			return strings.TrimSuffix(body, "}") + `,"debug":"` + sig + `"}`
		}),
		"refusal": replaces(ramp.PathValidate, `"success":false`, `"success":true`),
		"sign-unchanged/capitals": signs(func(s *studio, asked message, right string) string {
			if strings.ToLower(asked.text("digest")) == asked.text("digest") {
				return right
			}
			return s.signature(make([]byte, 32))
		}),
		"sign-v": signs(func(_ *studio, _ message, right string) string {
			return right[:130] + strings.NewReplacer("1b", "00", "1c", "01").Replace(right[130:])
		}),
		"sign-low-s": signs(func(_ *studio, _ message, right string) string {
			sig, _ := ramp.ParseSignature(right)
			n := crypto.S256().Params().N
			new(big.Int).Sub(n, new(big.Int).SetBytes(sig[32:64])).FillBytes(sig[32:64])
			sig[64] ^= 27 ^ 28
			return sig.String()
		}),
		"user-sig/65-bytes":  echoes(func(string) string { return "0x" }),
		"user-sig/capitals":  echoes(strings.ToLower),
		"user-sig/no-prefix": echoes(func(sig string) string { return "0x" + sig }),
		"user-sig/long":      echoes(func(sig string) string { return sig[:132] }),
		"user-sig/short":     echoes(func(sig string) string { return sig + "1b" }),
		"user-sig-other-hash": rejects(func(m message) bool {
			sig := common.FromHex(m.text("user_sig"))
			if m["receipt"] != nil || len(sig) != 65 {
				return false
			}
			sig[64] -= 27
			key, err := crypto.SigToPub(digest(m), sig)
			return err != nil || crypto.PubkeyToAddress(*key) != common.HexToAddress(m.text("user_address"))
		}),
		"null-fields/validate":     replaces(ramp.PathValidate, `"errorCode":null,`, ""),
		"rejection-envelope/order": replaces(ramp.PathValidate, `"data":null`, `"data":{"validatorSig":""}`),
		"rejection-envelope/form":  says(ramp.PathValidate, bad("digest"), 422, `{"detail":[]}`),
		"content-type/approval":    plainText(ramp.PathValidate, 200),
		"content-type/rejection":   plainText(ramp.PathValidate, 0),
		"rejection-no-token": answers(ramp.PathAssets,
			func(_ *studio, r *http.Request, _ message, body string) string {
				return strings.Replace(body, "INVALID_USER", "no: "+r.Header.Get(ramp.HeaderAuthorization), 1)
			}),
	} {
		m[id] = mutant
	}
	return m
}

// signsAnything is a server that signs whatever the digest is for, if the body is in some way
// wrong.
func signsAnything(when func(message) bool) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		m := parse(body)
		if r.URL.Path != ramp.PathValidate || !s.authentic(r, body) || !when(m) {
			next.ServeHTTP(w, r)
			return
		}
		reply(w, 200, string(jsonOf(map[string]any{"success": true, "errorCode": nil, "data": map[string]any{
			"userSig": m["user_sig"], "validatorSig": s.signature(common.FromHex(m.text("digest")))}})))
	})
}

func TestTheFormOfAnApprovalIsForOneCase(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(data string) string{
		"data is a text": func(data string) string { return string(jsonOf(data)) },
		"other names":    strings.NewReplacer("userSig", "user_sig", "validatorSig", "validator_sig").Replace,
		"other capitals": strings.NewReplacer("userSig", "UserSig", "validatorSig", "ValidatorSig").Replace,
	} {
		j := newJudge(t,
			newStudio(t,
				answers(ramp.PathValidate, func(_ *studio, _ *http.Request, _ message, body string) string {
					before, data, approved := strings.Cut(body, `"data":{`)
					if !approved {
						return body
					}
					return before + `"data":` + spoil("{"+strings.TrimSuffix(data, "}")) + "}"
				})))
		for id, want := range map[string]judge.Outcome{
			"sign-form": judge.Failed, "sign-unchanged": judge.Skipped, "sign-v": judge.Skipped,
			"user-sig": judge.Skipped,
		} {
			v := j.Try(t.Context(), caseOf(t, id))
			assert.Equal(t, want, v.Outcome, "%s: %s", name, v)
		}
	}
}

// Whoever replaces s and keeps v is told that it is v that is wrong.
func TestAnotherVIsNamed(t *testing.T) {
	t.Parallel()
	s := newStudio(t, signs(func(_ *studio, _ message, right string) string {
		return right[:130] + strings.NewReplacer("1b", "1c", "1c", "1b").Replace(right[130:])
	}))
	v := s.unopened(t).Try(t.Context(), caseOf(t, "sign-unchanged/known"))
	assert.Contains(t, v.Saw, ", but with the other v to the registered key")
}

// A signature for the player's order before does not mix up players.
func TestAnEarlierSignatureOfThePlayerIsForOneCase(t *testing.T) {
	skipSlow(t, false)
	t.Parallel()
	var first sync.Map // by session and intent
	inVirtualTime(t,
		answers(ramp.PathValidate, func(_ *studio, r *http.Request, asked message, body string) string {
			if !strings.Contains(body, "validatorSig") {
				return body
			}
			answer, _ := first.LoadOrStore(r.Header.Get(ramp.HeaderSession)+string(jsonOf(asked["intent"])), body)
			return answer.(string)
		}), func(t *testing.T, s *studio) {
			assert.Equal(t, "sign-every", judge.Causes(judged(t, s))[0].First().Case.ID)
		})
}

// What is wrong with the signatures of some approvals is found in those of all cases.
func TestAWrongSignatureIsFoundInAnyApproval(t *testing.T) {
	t.Parallel()
	digest := func(m message) []byte { return common.FromHex(m.text("digest")) }
	seen := make(map[string]bool)
	var kept string
	for name, m := range map[string]mutant{
		"burns": signs(func(s *studio, asked message, right string) string {
			if asked.text("intent.method") == "mint" {
				return right
			}
			return s.signature(crypto.Keccak256(digest(asked)))
		}),
		"the first one for all": signs(func(_ *studio, _ message, right string) string {
			kept = cmp.Or(kept, right)
			return kept
		}),
		"repeats": signs(func(s *studio, asked message, right string) string {
			if !seen[asked.text("uuid")] {
				seen[asked.text("uuid")] = true
				return right
			}
			return s.signature(crypto.Keccak256(digest(asked)))
		}),
	} {
		inVirtualTime(t, m, func(t *testing.T, s *studio) {
			j := s.unopened(t)
			if err := j.Ready(t.Context()); err != nil {
				require.Equal(t, "the first one for all", name, err)
				return
			}
			v := j.Try(t.Context(), caseOf(t, "sign-every"))
			assert.Equal(t, judge.Failed, v.Outcome, name)
		})
	}
}

// nonced signs a digest with the validator key and a nonce.
func nonced(digest []byte, k *big.Int) string {
	curve := crypto.S256()
	n, key := curve.Params().N, new(big.Int)
	key.SetString("1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef", 16)
	x, y := curve.ScalarBaseMult(k.Bytes())
	s := new(big.Int).Mul(x, key)
	s.Add(s, new(big.Int).SetBytes(digest)).Mul(s, new(big.Int).ModInverse(k, n)).Mod(s, n)
	v := y.Bit(0)
	if s.Cmp(new(big.Int).Rsh(n, 1)) > 0 {
		s.Sub(n, s)
		v ^= 1
	}
	return fmt.Sprintf("0x%064x%064x%02x", x, s, 27+v)
}
