package inventory

// Hurry makes the turns of a search so short that every walk is interrupted over and over.
func (s *Search) Hurry() { s.turn = 1 }

// Steps is how many are left.
func (s *Search) Steps() int { return s.steps }
