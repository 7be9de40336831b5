package ramptest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faultForms are the faults as [ParseFault] reads them. argument is how the part
// after the equals sign is written; without one there is none.
var faultForms = []struct {
	name, argument, says string
	make                 func(argument string) (Fault, error)
}{
	{"transaction-fails", "", "receipt.status is 0x0", plain(TransactionFails)},
	{"stays-pending", "", "the transaction gets into no block", plain(StaysPending)},
	{"transaction-type", "NUMBER", "0x7 is sponsored, any other is unknown", transactionType},
	{"reorganized", "", "the block is replaced after the first result", plain(Reorganized)},
	{"result-twice", "", "the result comes again at once", plain(ResultTwice)},
	{"result-at-once", "COUNT", "so many results at the same time", counted(ResultAtOnce)},
	{"result-late", "DURATION", "the result comes that much later", lasting(ResultLate)},
	{"result-never", "", "the result is not sent", plain(ResultNever)},
	{"result-after-next", "", "the result comes after that of the next order", plain(ResultAfterNext)},
	{"without-fee", "", "the result has no fee_rate and no actual", plain(WithoutFee)},
	{"expired-uuid", "", "the player comes after 5 minutes", plain(ExpiredUUID)},
	{"validate-twice", "", "the same validate call again", plain(ValidateTwice)},
	{"validate-at-once", "COUNT", "so many validate calls at the same time", counted(ValidateAtOnce)},
	{"validate-other-digest", "", "another digest under the same UUID", plain(ValidateOtherDigest)},
	{"validate-other-amount", "", "other amounts under the same UUID", plain(ValidateOtherAmount)},
	{"tampered-body", "CALL", "first a call whose body was changed", calling(TamperedBody)},
	{"wrong-hmac", "CALL", "first a call signed with another key", calling(WrongHMAC)},
	{"missing-hmac", "CALL", "first a call without a signature", calling(MissingHMAC)},
	{"lost-answer", "CALL", "nobody hears the answer", calling(LostAnswer)},
	{"slow-answer", "CALL:DURATION", "the answer takes that long", slow},
	{"unknown-fields", "CALL", "the call has fields that the interface does not have", calling(UnknownFields)},
}

// FaultForms lists how [ParseFault] reads each fault, and what it does: "result-late=DURATION"
// and "the result comes that much later", say. CALL is validate or result, and
// DURATION is one of package time, such as 10m.
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

// ParseFault reads a fault as the control API and the command line write it, and
// as [Fault.String] does: "transaction-fails", "result-late=10m" or
// "lost-answer=validate". [FaultForms] lists them all. A count is 100 at most.
func ParseFault(text string) (Fault, error) {
	name, argument, given := strings.Cut(text, "=")
	for _, f := range faultForms {
		if f.name != name {
			continue
		}
		if given != (f.argument != "") {
			return Fault{}, fmt.Errorf("ramptest: the fault is written %q", strings.TrimSuffix(f.name+"="+f.argument, "="))
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

// parseFaults reads a list of faults.
func parseFaults(texts []string) ([]Fault, error) {
	const most = 100 // each may mean more calls
	if len(texts) > most {
		return nil, fmt.Errorf("ramptest: an order takes %d faults at most", most)
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
		return Fault{}, fmt.Errorf("NUMBER must be one of 64 bits, such as 0x7")
	}
	return TransactionType(n), nil
}

func parseCall(text string) (On, error) {
	if !slices.Contains([]On{OnValidate, OnResult}, On(text)) {
		return "", fmt.Errorf("CALL must be validate or result")
	}
	return On(text), nil
}

// mostPassing bounds a time that a caller of the control API lets pass: no test
// needs more, and a clock can show no more than 292 years.
const mostPassing = 10 * 365 * 24 * time.Hour

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > mostPassing {
		return 0, fmt.Errorf("DURATION must be one such as 90s, 15m or 12h, of 10 years at most")
	}
	return d, nil
}
