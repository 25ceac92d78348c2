package network

import "math/big"

// Size is how many addresses the pool has.
func (p Pool) Size() *big.Int {
	start, end := p.Start.As16(), p.End.As16()
	n := new(big.Int).Sub(new(big.Int).SetBytes(end[:]), new(big.Int).SetBytes(start[:]))
	return n.Add(n, big.NewInt(1))
}

// Capacity is how many addresses the subnet hands out by itself.
func (s Subnet) Capacity() *big.Int {
	all := new(big.Int)
	for _, p := range s.Pools {
		all.Add(all, p.Size())
	}
	return all
}
