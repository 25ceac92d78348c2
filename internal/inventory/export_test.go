package inventory

// ShortenTurns makes the turns of a search so short that every walk is interrupted many times.
func (s *Search) ShortenTurns() { s.turn = 1 }

// Steps returns the number of steps that the search has left.
func (s *Search) Steps() int { return s.steps }
