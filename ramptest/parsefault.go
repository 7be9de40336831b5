package ramptest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faultForms lists the faults that [ParseFault] reads. argument names the part after
// the equals sign; it is empty if there is none.
var faultForms = []struct {
	name, argument, says string
	make                 func(argument string) (Fault, error)
}{
	{"transaction-fails", "", "receipt.status is 0x0", plain(TransactionFails)},
	{"stays-pending", "", "the transaction is never mined", plain(StaysPending)},
	{"transaction-type", "NUMBER", "type 0x7 is sponsored; other types are unknown", transactionType},
	{"reorganized", "", "the block is replaced after the first result", plain(Reorganized)},
	{"reorganized-unnoticed", "", "the same, and the result is sent again unchanged", plain(ReorganizedUnnoticed)},
	{"result-twice", "", "the result is sent again immediately", plain(ResultTwice)},
	{"result-at-once", "COUNT", "the result is sent COUNT times at the same time", counted(ResultAtOnce)},
	{"result-late", "DURATION", "the result is delayed by DURATION", lasting(ResultLate)},
	{"result-never", "", "the result is not sent", plain(ResultNever)},
	{"burns-less", "", "the transaction burns one of the token's smallest units less than the order is about", plain(BurnsLess)},
	{"minted-by-stranger", "", "somebody with the validator key mints the same", plain(MintedByStranger)},
	{"result-after-next", "", "the result follows that of the next order", plain(ResultAfterNext)},
	{"without-fee", "", "the result has no fee_rate and no actual", plain(WithoutFee)},
	{"expired-uuid", "", "the UUID has expired", plain(ExpiredUUID)},
	{"validate-twice", "", "the validate call is repeated", plain(ValidateTwice)},
	{"validate-at-once", "COUNT", "the validate call is made COUNT times at the same time", counted(ValidateAtOnce)},
	{"validate-other-digest", "", "a second validate call with another digest", plain(ValidateOtherDigest)},
	{"validate-other-amount", "", "a second validate call with other amounts", plain(ValidateOtherAmount)},
	{"validate-other-token", "", "an order for another token comes first", plain(ValidateOtherToken)},
	{"validate-other-rate", "", "an order at another rate comes first", plain(ValidateOtherRate)},
	{"validate-extra-item", "", "an order with an item more comes first", plain(ValidateExtraItem)},
	{"tampered-body", "CALL", "a call with a changed body comes first", calling(TamperedBody)},
	{"wrong-hmac", "CALL", "a call with a wrong signature comes first", calling(WrongHMAC)},
	{"missing-hmac", "CALL", "a call without a signature comes first", calling(MissingHMAC)},
	{"lost-answer", "CALL", "the answer is lost", calling(LostAnswer)},
	{"slow-answer", "CALL:DURATION", "the answer takes DURATION", slow},
	{"unknown-fields", "CALL", "the call has fields that the interface does not have", calling(UnknownFields)},
}

// FaultForms returns the form of each fault that [ParseFault] reads, with a
// description: for example "result-late=DURATION" and "the result is delayed by
// DURATION". CALL is validate or result. DURATION is a [time.Duration] such as 10m.
// COUNT is a number from 1 to 100.
func FaultForms() (forms [][2]string) {
	for _, f := range faultForms {
		form := f.name
		if f.argument != "" {
			form += "=" + f.argument
		}
		forms = append(forms, [2]string{form, f.says})
	}
	return forms
}

// ParseFault parses a fault in the form that the control API, the command line and
// [Fault.String] use, such as "transaction-fails", "result-late=10m" or
// "lost-answer=validate". [FaultForms] lists all forms.
func ParseFault(text string) (Fault, error) {
	name, argument, given := strings.Cut(text, "=")
	for _, f := range faultForms {
		if f.name != name {
			continue
		}
		if given != (f.argument != "") {
			return Fault{}, fmt.Errorf("ramptest: the fault must be written %q", strings.TrimSuffix(f.name+"="+f.argument, "="))
		}
		fault, err := f.make(argument)
		if err != nil {
			return Fault{}, fmt.Errorf("ramptest: the fault %s=%s: %w", f.name, f.argument, err)
		}
		return fault, nil
	}
	names := make([]string, len(faultForms))
	for i, f := range faultForms {
		names[i] = f.name
	}
	return Fault{}, fmt.Errorf("ramptest: there is no such fault; there are %s", strings.Join(names, ", "))
}

// parseFaults parses a list of faults.
func parseFaults(texts []string) ([]Fault, error) {
	const limit = 100 // each may cause more calls
	if len(texts) > limit {
		return nil, fmt.Errorf("ramptest: an order may have at most %d faults", limit)
	}
	var faults []Fault
	for _, text := range texts {
		fault, err := ParseFault(text)
		if err != nil {
			return nil, err
		}
		faults = append(faults, fault)
	}
	return faults, nil
}

func plain(fault func() Fault) func(string) (Fault, error) {
	return func(string) (Fault, error) { return fault(), nil }
}

func counted(fault func(int) Fault) func(string) (Fault, error) {
	return func(argument string) (Fault, error) {
		n, err := strconv.Atoi(argument)
		if err != nil || n < 1 || n > 100 {
			return Fault{}, fmt.Errorf("COUNT must be a number from 1 to 100")
		}
		return fault(n), nil
	}
}

func lasting(fault func(time.Duration) Fault) func(string) (Fault, error) {
	return func(argument string) (Fault, error) {
		d, err := parseDuration(argument)
		return fault(d), err
	}
}

func calling(fault func(On) Fault) func(string) (Fault, error) {
	return func(argument string) (Fault, error) {
		call, err := parseCall(argument)
		return fault(call), err
	}
}

func slow(argument string) (Fault, error) {
	name, lasts, _ := strings.Cut(argument, ":")
	call, err := parseCall(name)
	if err != nil {
		return Fault{}, err
	}
	d, err := parseDuration(lasts)
	return SlowAnswer(call, d), err
}

func transactionType(argument string) (Fault, error) {
	n, err := strconv.ParseUint(argument, 0, 64)
	if err != nil {
		return Fault{}, fmt.Errorf("NUMBER must be a 64-bit number such as 0x7")
	}
	return TransactionType(n), nil
}

func parseCall(text string) (On, error) {
	if !slices.Contains([]On{OnValidate, OnResult}, On(text)) {
		return "", fmt.Errorf("CALL must be validate or result")
	}
	return On(text), nil
}

// maxPassing bounds how far a caller of the control API can move the clock. No test
// needs more, and a time.Duration holds at most 292 years.
const maxPassing = 10 * 365 * 24 * time.Hour

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxPassing {
		return 0, fmt.Errorf("DURATION must be a time such as 90s, 15m or 12h, and at most 10 years")
	}
	return d, nil
}
