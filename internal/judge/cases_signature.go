package judge

import (
	"cmp"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// signatureCases returns the cases about the digest and the two signatures of an approval
// (interface 2.6, 5.3).
func signatureCases() []Case {
	const (
		raw32 = "Sign the 32 bytes of the digest as they are, with the key whose address is registered: " +
			"no prefix, no second hash, and v flipped wherever s is replaced."
	)
	digests := rows[edit]{Must: {
		{"missing", "without a digest", drop("digest")},
		{"null", "whose digest is null", set("digest", nil)},
		{"empty", "whose digest is empty", set("digest", "")},
		{"0x", "whose digest is 0x", set("digest", "0x")},
		{"31-bytes", "whose digest has 31 bytes", set("digest", digestOf("ab")[:64])},
		{"33-bytes", "whose digest has 33 bytes", set("digest", digestOf("ab")+"ab")},
		{"64-bytes", "whose digest has 64 bytes", set("digest", digestOf("ab")+digestOf("ab")[2:])},
		{"odd", "whose digest ends in half a byte", set("digest", digestOf("ab")[:65])},
		{"not-hex", "whose digest is not hex", set("digest", digestOf("zz"))},
	}, Should: {
		{"no-prefix", "whose digest lacks 0x", set("digest", digestOf("ab")[2:])},
		{"number", "whose digest is a number", set("digest", number(12))},
	}}.inputs(rejected)
	unchanged := rows[string]{Must: {
		{"ones", "ff bytes only", digestOf("ff")},
		{"leading-zeros", "31 bytes of zero at the beginning", "0x" + strings.Repeat("0", 62) + "01"},
		{"trailing-zeros", "31 bytes of zero at the end", "0x01" + strings.Repeat("0", 62)},
		{"known", "the hash of a word", crypto.Keccak256Hash([]byte("test")).Hex()},
		{"capitals", "upper-case hex, unless the order is rejected", "0x" + strings.Repeat("AB", 32)},
	}}.inputs(func(t *trial, text string) {
		digest, _ := ramp.ParseDigest(text)
		o := t.plain(signedOver(t.player, digest), set("digest", text))
		a := t.validate(o)
		if text == strings.ToLower(text) {
			t.approved(a)
		}
		if t.either(a) {
			data := t.read(a)
			// Either v and either s will do, because the interface does not restrict them.
			if t.signature(data); !t.isOurs(o, data.ValidatorSig) {
				t.fail(t.otherSigner(o, data), "the signature of "+t.Validator.Hex()+" over the digest")
			}
			t.confirm(o, failure)
		}
		t.moved(0)
	})
	userSigs := rows[func(sig string) string]{Must: {
		{"65-bytes", "of 65 bytes", strings.Clone},
		{"capitals", "in upper-case hex", func(sig string) string { return "0x" + strings.ToUpper(sig[2:]) }},
		{"no-prefix", "without 0x", func(sig string) string { return sig[2:] }},
		{"long", "of 300 bytes, as a contract wallet may create,",
			func(string) string { return "0x" + strings.Repeat("5a", 300) }},
		{"short", "of 64 bytes", func(sig string) string { return sig[:130] }},
	}}.inputs(func(t *trial, change func(string) string) {
		o := t.plain(changed("user_sig", change))
		if a := t.validate(o); t.either(a) {
			if data := t.read(a); data.UserSig != o.body.at("user_sig") {
				t.fail(cmp.Or(t.mixed(o, data, true), "another userSig than the user_sig that was sent"),
					"the same string")
			}
			t.confirm(o, failure)
		}
		t.moved(0)
	},
	)
	return []Case{
		{ID: "digest-wrong", Inputs: digests,
			Fix:   "Reject a digest that is not 0x and 64 hex digits before you take anything.",
			Title: "A mint whose digest is not 0x and 64 hex digits is rejected, and nothing is signed."},
		{ID: "sign-form", last: true,
			Fix: "Name the fields of data userSig and validatorSig, and write validatorSig as 0x and " +
				"130 hex digits: r, s and v.",
			Title: "Every approval that the judge got has userSig, and a validatorSig of 65 bytes in " +
				"hex with 0x.",
			run: func(t *trial) {
				const want = "an object with userSig and validatorSig, which is 0x and 130 hex digits"
				a := t.validate(t.plain())
				t.approved(a)
				if data := a.approval(); data.UserSig == "" || data.ValidatorSig == "" {
					t.failAt(a, "data without the texts userSig and validatorSig", want)
				}
				t.nowhere(otherForm, want)
			}},
		{ID: "sign-unchanged", Fix: raw32, Inputs: unchanged,
			Title: "Any digest of 32 bytes is signed as it is."},
		{ID: "user-sig", Section: "2.6", Inputs: userSigs,
			Fix: "Return user_sig unchanged, or reject it before you take anything: an answer of HTTP " +
				"500 gives nothing back.",
			Title: "The userSig of an approval is user_sig unchanged, whatever its form, or the order is " +
				"rejected."},
		{ID: "sign-v", Level: Should,
			Fix:   "Add 27 to a v of 0 or 1: contracts require 27 or 28.",
			Title: "The v of validatorSig is 27 or 28.",
			run: func(t *trial) {
				if sig := t.signature(t.approval(t.plain())); sig[64] != 27 && sig[64] != 28 {
					t.fail("another v", "27 or 28")
				}
			}},
		{ID: "sign-low-s", Level: Should,
			Fix: "Replace a high s with the order of the curve minus s, and flip v: contracts reject " +
				"a high s.",
			Title: "The s of validatorSig is in the lower half.",
			run: func(t *trial) {
				for range 4 { // a key service may choose either half each time
					t.renew()
					o := t.plain()
					if sig := t.signature(t.approval(o)); highS(sig) {
						t.fail("a high s", "an s of at most half the order of the curve")
					}
					t.report(o, failure) // a player may have one open order only
				}
			}},
		{ID: "user-sig-other-hash", Level: Should, Section: "2.5",
			Fix:   "Do not verify user_sig against digest: the interface does not say what the user signs.",
			Title: "An order is not rejected because its user_sig signs another hash than the digest.",
			run: func(t *trial) {
				key, _ := wallet(t.player)
				t.approve(t.plain(set("user_sig",
					signedBy(key, ramp.Digest(crypto.Keccak256([]byte("another hash")))))))
			}},
		{ID: "sign-every", Fix: raw32, last: true,
			Title: "Every approval that the judge got is signed by the registered key over the digest of " +
				"its order.",
			run: func(t *trial) {
				t.nowhere(otherSigner, "the signature of "+t.Validator.Hex()+" over the digest")
			}},
		{ID: "sign-nonce", last: true,
			Fix: "Sign with a nonce that RFC 6979 derives from key and digest, as the usual libraries " +
				"do: with two signatures that share a nonce, anybody computes the validator key.",
			Title: "No two approvals that the judge got have the same r.",
			run: func(t *trial) {
				for range 2 {
					t.renew()
					t.confirm(t.approve(t.plain()), failure)
				}
				t.nowhere(reused, "another r in each")
			}},
		{ID: "sign-rejected",
			Fix: "Sign only what you approve: with the signature of a rejected order, a player makes the " +
				"transaction without paying for it.", last: true,
			Title: "No rejection that the judge got holds a signature of the digest.",
			run:   func(t *trial) { t.nowhere(leaked, "a rejection without a signature") }},
		{ID: "refusal", Section: "7.2",
			Fix: "Verify the HMAC of every call, and answer one that is not authentic with success " +
				"false, for example a validate call with HTTP 401 and a result with 500, so that a wrong " +
				"key loses no result.",
			Title: "A rejection is a rejection: a call without an HMAC is not answered like an approved " +
				"or confirmed one.",
			run: func(t *trial) {
				a := t.post(t.ValidatePath, t.plain().body)
				if t.either(a) && a.approval().ValidatorSig == "" {
					t.confuses(a, "a rejection") // a signature is for the cases about the HMAC
				}
				// Where a mint takes its assets at validate and an authentic result gives
				// them back, a forged one that gives nothing back was not believed.
				if t.renew(); !t.has("mint") {
					return
				}
				o := t.approve(t.mint())
				taken := t.now()
				if t.err != nil || taken.of(t.asset).Cmp(t.before.of(t.asset)) >= 0 {
					return
				}
				a = t.post(t.ResultPath, o.result(failure))
				if t.either(a) {
					t.pause(min(t.Settle, watchTime))
					forged := t.look(t.player)
					t.report(o, failure)
					t.pause(min(t.Settle, watchTime))
					if forged.of(t.asset).Cmp(taken.of(t.asset)) == 0 &&
						t.look(t.player).of(t.asset).Cmp(taken.of(t.asset)) > 0 {
						t.confuses(a, "a rejection")
					}
				}
			}},
		{ID: "rejection-envelope", Section: "7.2", after: []string{"refusal"},
			Fix: `Answer every rejection with {"success":false,"errorCode":"…","data":null}, ` +
				"even where a framework or a proxy answers for you.",
			Title: "A rejection has success false, a string as errorCode, data null, and no signature.",
			Inputs: rows[func(*trial) answer]{Must: {
				{"order", "of an order about an unknown asset",
					func(t *trial) answer { return t.validate(t.plain(ofNobody)) }},
				{"token", "of an assets call with an unknown token",
					func(t *trial) answer { return t.assets(t.player, unknownToken) }},
				{"validate-hmac", "of a validate call with a wrong HMAC",
					func(t *trial) answer { return atValidate.valid(t).unsigned() }},
				{"result-hmac", "of a result with a wrong HMAC",
					func(t *trial) answer { return atResult.valid(t).unsigned() }},
			}, Should: {
				{"form", "of an order without a digest",
					func(t *trial) answer { return t.validate(t.plain(drop("digest"))) }},
			}}.inputs(func(t *trial, ask func(*trial) answer) {
				a := ask(t)
				if a.succeeded {
					t.skip(notRejected)
				}
				if t.answered(a) && !a.isRejection() {
					t.mismatch(a, "success false, a string as errorCode and data null")
				}
				if strings.Contains(string(a.body), "validatorSig") {
					t.failAt(a, "a validatorSig in a rejection", "data null")
				}
			})},
		{ID: "rejection-no-token", Level: Should, Section: "5.1",
			Fix:   "Never put a token in an answer.",
			Title: "No answer contains the access token.",
			run: func(t *trial) {
				for _, a := range []answer{t.assets(t.player), t.assets(t.player, unknownSession),
					t.validate(t.plain()),
					t.validate(t.plain(ofNobody))} {
					if t.answered(a) && strings.Contains(string(a.body), t.player.Token.Reveal()) {
						t.failAt(a, "the access token in an answer", "an answer without it")
					}
				}
			}},
	}
}

// ofNobody makes an order about an asset that the game does not have.
var ofNobody = ofAsset("item_of_nobody")

func ofAsset(id string) edit {
	return func(o object) object {
		assets, _ := o.sides()
		return o.with(assets+".0.id", id)
	}
}

// confuses records that a rejection looks like a success.
func (t *trial) confuses(a answer, want string) {
	if t.mismatch(a, want); t.err != nil {
		t.err.(*finding).confusing = a.call.Path
	}
}

// nowhere requires that no answer that the judge got has a signature that is wrong in a way.
func (t *trial) nowhere(how signatureFault, want string) {
	if wrong := t.server.wrongSignature(how); wrong != "" {
		t.fail(wrong, want)
	}
}

const otherFormed = "the approval has another form, which is for the case sign-form"

// approval makes the validate call of an order, requires an approval and returns its
// data.
func (t *trial) approval(o order) approval {
	a := t.validate(o)
	t.approved(a)
	return t.read(a)
}

func (t *trial) read(a answer) approval {
	data := a.approval()
	if data.UserSig == "" || data.ValidatorSig == "" {
		t.skip(otherFormed)
	}
	return data
}

// signedOver returns an edit that sets another digest, and the wallet's signature of it.
func signedOver(s ramp.Session, d ramp.Digest) edit {
	key, _ := wallet(s)
	return func(o object) object { return o.with("digest", d.String()).with("user_sig", signedBy(key, d)) }
}

// otherDigest returns an edit that makes an order of the case's player a second one.
func (t *trial) otherDigest() edit { return signedOver(t.player, randomDigest()) }

// signature reads a validatorSig.
func (t *trial) signature(data approval) ramp.Signature {
	sig, err := ramp.ParseSignature(data.ValidatorSig)
	if err != nil {
		t.skip(otherFormed)
	}
	return sig
}

func highS(sig ramp.Signature) bool {
	half := new(big.Int).Rsh(crypto.S256().Params().N, 1)
	return new(big.Int).SetBytes(sig[32:64]).Cmp(half) > 0
}
