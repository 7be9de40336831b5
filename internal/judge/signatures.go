package judge

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// looksAt records what is wrong with the signature of an approval of an order.
func (t *trial) looksAt(o order, data approval) {
	digest, sig := literalText(o.body.at("digest")), data.ValidatorSig
	if _, err := ramp.ParseDigest(digest); err != nil || sig == "" {
		return
	}
	_, err := ramp.ParseSignature(sig)
	switch own := t.isOurs(o, sig); {
	case err != nil:
		t.saw(otherForm, "a validatorSig of another form")
	case t.ledger.repeats(o, sig):
	case !own && t.server.wrongSignature(otherSigner) == "": // only the first one is shown
		t.saw(otherSigner, t.otherSigner(o, data))
	case own && t.server.reuses(sig, digest):
		t.saw(reused, "two signatures of different digests with the same r")
	}
}

// saw records the first approval whose signature is wrong in a way.
func (t *trial) saw(how signatureFault, wrong string) {
	t.server.unsigned.LoadOrStore(how, wrong+", in "+cmp.Or(t.name, "the opening"))
}

// isOurs reports whether a signature is that of the registered key over the digest of an
// order.
func (t *trial) isOurs(o order, sig string) bool {
	signer, err := signerOf(o, sig)
	return err == nil && signer == t.Validator
}

// otherSigner describes a signature that is not that of the registered key.
func (t *trial) otherSigner(o order, data approval) string {
	wrong := "a validatorSig that is not a possible signature of the digest"
	if signer, err := signerOf(o, data.ValidatorSig); err == nil {
		wrong = "a validatorSig that recovers to " + signer.Hex()
	}
	if end := max(0, len(data.ValidatorSig)-1); t.isOurs(o,
		data.ValidatorSig[:end]+otherV.Replace(data.ValidatorSig[end:])) {
		wrong += ", but with the other v to the registered key"
	}
	return cmp.Or(t.mixed(o, data, true), wrong)
}

// otherV turns the last digit of a v of 0, 1, 27 or 28 into that of the other.
var otherV = strings.NewReplacer("0", "1", "1", "0", "b", "c", "c", "b", "B", "C", "C", "B")

// mixed returns what of an approval belongs to another order that the judge has sent, or
// "". It may leave out orders of the same player.
func (t *trial) mixed(o order, data approval, same bool) string {
	right := t.isOurs(o, data.ValidatorSig)
	for _, other := range t.server.latest() {
		switch {
		case other.body.at("digest") == o.body.at("digest"), !same && other.owner.ID == o.owner.ID:
		case data.UserSig != "" && data.UserSig != o.body.at("user_sig") &&
			data.UserSig == other.body.at("user_sig"):
			return "the userSig of another order, which was sent at about the same time"
		case !right && t.isOurs(other, data.ValidatorSig):
			return "a validatorSig over the digest of another order, which was sent at about the same time"
		}
	}
	return ""
}

// What may be 65 bytes in hex and in base64.
var (
	hexSignature    = regexp.MustCompile(`[0-9a-fA-F]{130}`)
	base64Signature = regexp.MustCompile(`[A-Za-z0-9+/_-]{87}`)
)

// leaks reports whether the rejection of an order holds a signature of its digest by the
// validator key, in a header or anywhere in the body. A signature that an approval gave
// before is not a leak.
func (t *trial) leaks(o order, a answer) bool {
	text := string(a.body)
	for _, values := range a.header {
		text += "\n" + strings.Join(values, "\n")
	}
	found := hexSignature.FindAllString(text, -1)
	for _, encoded := range base64Signature.FindAllString(text, -1) {
		if b, err := base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/",
			"_").Replace(encoded)); err == nil {
			found = append(found, hex.EncodeToString(b))
		}
	}
	return !t.ledger.known(o).approved && slices.ContainsFunc(found, func(sig string) bool {
		return t.isOurs(o, "0x"+sig)
	})
}

// signerOf returns the address that signed the digest of an order.
func signerOf(o order, text string) (common.Address, error) {
	digest, err := hex.DecodeString(strings.TrimPrefix(literalText(o.body.at("digest")), "0x"))
	if err != nil {
		return common.Address{}, err
	}
	sig, err := ramp.ParseSignature(text)
	if err != nil {
		return common.Address{}, err
	}
	if sig[64] >= 27 {
		sig[64] -= 27
	}
	key, err := crypto.SigToPub(digest, sig[:])
	if err != nil {
		return common.Address{}, err
	}
	return crypto.PubkeyToAddress(*key), nil
}

// commitsTo reports whether an answer commits to the digest of an order: it holds
// a signature over it by the validator key.
func (t *trial) commitsTo(o order, a answer) bool {
	return t.err == nil && a.succeeded && t.isOurs(o, a.approval().ValidatorSig)
}
