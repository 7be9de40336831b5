package ramptest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faultForm is the form of a fault that [ParseFault] reads. argument names the part after
// the equals sign; it is empty if there is none.
type faultForm struct {
	name, argument, says string
	parse                func(argument string) (Fault, error)
}

// form returns the form of faults like example, which parse makes.
func form(example Fault, argument, says string, parse func(string) (Fault, error)) faultForm {
	name, _, _ := strings.Cut(example.name, "=")
	return faultForm{name, argument, says, parse}
}

var faultForms = []faultForm{
	plain(TransactionFails, "receipt.status is 0x0"),
	plain(StaysPending, "the transaction is never mined"),
	form(TransactionType(0), "NUMBER", "type 0x7 is sponsored; other types are unknown", transactionType),
	plain(Reorganized, "the block is replaced after the first result"),
	plain(ReorganizedUnnoticed, "the same, and the result is sent again unchanged"),
	plain(ResultTwice, "the result is sent again immediately"),
	counted(ResultAtOnce, "the result is sent COUNT times at the same time"),
	form(ResultLate(0), "DURATION", "the result is delayed by DURATION", late),
	plain(ResultNever, "the result is not sent"),
	plain(BurnsLess, "the transaction burns one of the token's smallest units less than the order is about"),
	plain(MintedByStranger, "somebody with the validator key mints the same"),
	plain(ResultAfterNext, "the result follows that of the next order"),
	plain(WithoutFee, "the result has no fee_rate and no actual"),
	plain(ExpiredUUID, "the UUID has expired"),
	plain(ValidateTwice, "the validate call is repeated"),
	counted(ValidateAtOnce, "the validate call is made COUNT times at the same time"),
	plain(ValidateOtherDigest, "a second validate call with another digest"),
	plain(ValidateOtherAmount, "a second validate call with other amounts"),
	plain(ValidateOtherToken, "an order for another token comes first"),
	plain(ValidateOtherRate, "an order at another rate comes first"),
	plain(ValidateExtraItem, "an order with an item more comes first"),
	calling(TamperedBody, "a call with a changed body comes first"),
	calling(WrongHMAC, "a call with a wrong signature comes first"),
	calling(MissingHMAC, "a call without a signature comes first"),
	calling(LostAnswer, "the answer is lost"),
	plain(StoreFails, "the store of a handler in memory fails at the first result"),
	form(SlowAnswer(OnResult, 0), "CALL:DURATION", "the answer takes DURATION", slow),
	calling(UnknownFields, "the call has fields that the interface does not have"),
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
			return Fault{},
				fmt.Errorf("ramptest: the fault must be written %q",
					strings.TrimSuffix(f.name+"="+f.argument, "="))
		}
		fault, err := f.parse(argument)
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

func plain(fault func() Fault, says string) faultForm {
	return form(fault(), "", says, func(string) (Fault, error) { return fault(), nil })
}

func counted(fault func(int) Fault, says string) faultForm {
	return form(fault(1), "COUNT", says, func(argument string) (Fault, error) {
		n, err := strconv.Atoi(argument)
		if err != nil || n < 1 || n > 100 {
			return Fault{}, fmt.Errorf("COUNT must be a number from 1 to 100")
		}
		return fault(n), nil
	})
}

func calling(fault func(On) Fault, says string) faultForm {
	return form(fault(OnResult), "CALL", says, func(argument string) (Fault, error) {
		call, err := parseCall(argument)
		return fault(call), err
	})
}

func late(argument string) (Fault, error) {
	d, err := parseDuration(argument)
	return ResultLate(d), err
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
