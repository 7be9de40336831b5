package fault

import (
	"fmt"
	"strings"
	"time"
)

// Form is the form of a fault that [Forms.Parse] reads. Argument names the part after
// the equals sign; it is empty if there is none.
type Form struct {
	Name, Argument, Says string
	Read                 func(argument string) (Fault, error)
}

// Forms are the forms of all faults.
type Forms []Form

// List returns each form with its description.
func (f Forms) List() (list [][2]string) {
	for _, form := range f {
		text := form.Name
		if form.Argument != "" {
			text += "=" + form.Argument
		}
		list = append(list, [2]string{text, form.Says})
	}
	return list
}

// Parse parses a fault.
func (f Forms) Parse(text string) (Fault, error) {
	name, argument, given := strings.Cut(text, "=")
	for _, form := range f {
		if form.Name != name {
			continue
		}
		if given != (form.Argument != "") {
			return Fault{},
				fmt.Errorf("ramptest: the fault must be written %q",
					strings.TrimSuffix(form.Name+"="+form.Argument, "="))
		}
		fault, err := form.Read(argument)
		if err != nil {
			return Fault{}, fmt.Errorf("ramptest: the fault %s=%s: %w", form.Name, form.Argument, err)
		}
		return fault, nil
	}
	names := make([]string, len(f))
	for i, form := range f {
		names[i] = form.Name
	}
	return Fault{}, fmt.Errorf("ramptest: there is no such fault; there are %s", strings.Join(names, ", "))
}

// ParseAll parses a list of faults.
func (f Forms) ParseAll(texts []string) ([]Fault, error) {
	const limit = 100 // each may cause more calls
	if len(texts) > limit {
		return nil, fmt.Errorf("ramptest: an order may have at most %d faults", limit)
	}
	var faults []Fault
	for _, text := range texts {
		fault, err := f.Parse(text)
		if err != nil {
			return nil, err
		}
		faults = append(faults, fault)
	}
	return faults, nil
}

// maxPassing bounds how far a caller of the control API can move the clock. No test
// needs more, and a time.Duration holds at most 292 years.
const maxPassing = 10 * 365 * 24 * time.Hour

// ParseDuration parses a duration that a caller of the control API gives.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxPassing {
		return 0, fmt.Errorf("DURATION must be a time such as 90s, 15m or 12h, and at most 10 years")
	}
	return d, nil
}
